package jig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every line of scripts/mutations.tsv names a text that occurs once in a file, and tests that exist. `make mutate`, which runs the tests, takes hours.
func TestMutations_NameExistingTextsAndTests(t *testing.T) {
	t.Parallel()
	tests := testsByFolder(t)
	list, err := os.ReadFile("scripts/mutations.tsv")
	require.NoError(t, err)
	var wrong []string
	listed := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, fields, 5, line)
		file, text, folder, pattern := fields[0], fields[1], fields[3], fields[4]
		source, err := os.ReadFile(file)
		if n := strings.Count(string(source), text); err != nil || n != 1 {
			wrong = append(wrong, fmt.Sprintf("%s contains %q %d times, want once", file, text, n))
		}
		if what := strings.Join(fields[:3], "\t"); listed[what] {
			wrong = append(wrong, file+" is listed twice: "+text)
		} else {
			listed[what] = true
		}
		chosen, err := regexp.Compile(pattern)
		require.NoError(t, err, line)
		if !slices.ContainsFunc(tests[filepath.Clean(folder)], chosen.MatchString) {
			wrong = append(wrong, fmt.Sprintf("%s: no test of %s matches %q", file, folder, pattern))
		}
	}
	require.Empty(t, wrong, "%s", strings.Join(wrong, "\n"))
}
