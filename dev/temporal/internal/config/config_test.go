package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/dev/temporal/internal/config"
)

func TestRead_NumbersHaveTheTypesOfDynamicConfiguration(t *testing.T) {
	t.Parallel()
	c, err := config.Read(strings.NewReader(`{"frontend": "127.0.0.1:7233", "settings": {
		"matching.numTaskqueueReadPartitions": 1, "rate": 0.5, "on": true, "text": "1s", "nested": {"list": [2, {"deep": 3}]}
	}} ignored`))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"matching.numTaskqueueReadPartitions": 1, "rate": 0.5, "on": true, "text": "1s",
		"nested": map[string]any{"list": []any{2, map[string]any{"deep": 3}}},
	}, c.Settings)
}

func TestRead_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"", "[]", `{"fronted": "127.0.0.1:7233"}`, `{"settings": {"x": 1e999}}`} {
		_, err := config.Read(strings.NewReader(document))
		require.Error(t, err, document)
	}
}

func TestAddresses_LeaveAnAbsentWebUIOut(t *testing.T) {
	t.Parallel()
	c := config.Config{Frontend: "f", History: "h", Matching: "m", Worker: "w"}
	require.Equal(t, []string{"f", "h", "m", "w"}, c.Addresses())
	c.UI = "u"
	require.Contains(t, c.Addresses(), "u")
}
