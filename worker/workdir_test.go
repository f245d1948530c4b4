package worker_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/worker"
)

func TestStart_NeedsAWorkingDirectoryOfItsOwn(t *testing.T) {
	t.Parallel()
	for workdir, code := range map[string]jig.Code{"": jig.CodeMissingParam, "/": jig.CodeInvalidInput} {
		_, err := worker.Start(t.Context(), worker.Settings{DatabaseURL: "postgres://127.0.0.1:1/jig", Workdir: workdir}, slog.New(slog.DiscardHandler))
		require.Equal(t, code, jig.CodeOf(err), "%q: %v", workdir, err)
		require.ErrorContains(t, err, "JIG_WORKDIR")
	}
}
