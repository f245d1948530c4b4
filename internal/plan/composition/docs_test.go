package composition_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/spec"
)

const reference = "../../../docs/spec.md"

var fenced = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// pageRun is a run that a page describes, with the example above it and the section that contains both.
type pageRun struct {
	aRun
	section string
}

// runsOf reads the runs of a page. Each belongs to the example above it. An example without a run is an error in the page.
func runsOf(t *testing.T, file string) []pageRun {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []pageRun
	for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(string(text), -1) {
		title, rest, _ := strings.Cut(section, "\n")
		document, runs := "", 0
		for _, block := range fenced.FindAllStringSubmatch(rest, -1) {
			example := block[1]
			switch {
			case strings.HasPrefix(example, "steps:"):
				require.True(t, document == "" || runs > 0, "there is no run after the example\n%s", document)
				document, runs = "kind: composition\nname: example\n"+example, 0
			case regexp.MustCompile(`^kind: (policy|tenant|entity_type|thin_tool|bundle|budget|rate_limit)\n`).MatchString(example): // these do not run as compositions
			case strings.HasPrefix(example, "kind:"):
				require.True(t, document == "" || runs > 0, "there is no run after the example\n%s", document)
				document, runs = example, 0
			case strings.HasPrefix(example, "# run\n"):
				require.NotEmpty(t, document, "there is no example above this run of %s:\n%s", title, example)
				all = append(all, pageRun{aRun: readRun(t, document, example), section: title})
				runs++
			}
		}
		require.True(t, document == "" || runs > 0, "there is no run after the example\n%s", document)
	}
	return all
}

func readRun(t *testing.T, document, text string) aRun {
	t.Helper()
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &fields), text)
	raw, err := json.Marshal(fields)
	require.NoError(t, err, text)
	var run aRun
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&run), text)
	run.Name, run.Document = text, document
	return run
}

// The examples in the reference do what the page says, even when moves are lost.
func TestReference_RunsAsItSays(t *testing.T) {
	t.Parallel()
	for _, run := range runsOf(t, reference) {
		t.Run(run.section, func(t *testing.T) {
			t.Parallel()
			t.Log(run.Document + run.Name)
			run.check(t, nil)
			run.check(t, rand.New(rand.NewPCG(1, 1)))
		})
	}
}

// The examples on the page about other tools also do what the page says, even when moves are lost.
func TestReference_RunsForOtherTools(t *testing.T) {
	t.Parallel()
	runs := runsOf(t, "../../../docs/from-other-tools.md")
	require.GreaterOrEqual(t, len(runs), 4)
	for _, run := range runs {
		t.Run(run.section, func(t *testing.T) {
			t.Parallel()
			t.Log(run.Document + run.Name)
			run.check(t, nil)
			run.check(t, rand.New(rand.NewPCG(1, 1)))
		})
	}
}

// Each construct has a section with an example that succeeds, one that fails, its rules, its errors, and documents that are refused. Each key
// of a step appears in an example.
func TestReference_HasEveryConstruct(t *testing.T) {
	t.Parallel()
	runs := runsOf(t, reference)
	used := map[string]bool{}
	for _, run := range runs {
		var document any
		require.NoError(t, yaml.Unmarshal([]byte(run.Document), &document))
		noteKeys(document, used)
	}
	for _, part := range []any{
		spec.Step{}, spec.Prompt{}, spec.TaskCall{}, spec.Case{}, spec.WaitFor{}, spec.Emit{}, spec.Fail{}, spec.Retry{}, spec.OnError{}, spec.Undo{},
	} {
		for _, key := range keysOf(reflect.TypeOf(part)) {
			require.True(t, used[key], "no example has the key %s of %T", key, part)
		}
	}
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(text), "\n## Composition\n")
	body, _, _ = strings.Cut(body, "\n## ")
	sections := strings.Split(body, "\n### ")[1:]
	for _, section := range sections {
		title, rest, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(title, "`") {
			continue
		}
		for _, part := range []string{"# refused\n", "**Run-time errors.**"} {
			require.Positive(t, strings.Count(rest, part), "the section %s has no %s", title, part)
		}
		require.True(t, strings.Contains(rest, "**Rules.**") || strings.Contains(rest, "\n| "), "the section %s has no rules", title)
		succeeds, fails := false, false
		for _, run := range runs {
			if run.section == title {
				succeeds = succeeds || run.Error == nil
				fails = fails || run.Error != nil || strings.Contains(run.Name, "TIMEOUT")
			}
		}
		require.True(t, fails, "the section %s has no run that fails", title)
		require.True(t, succeeds || title == "`undo`", "the section %s has no run that succeeds", title)
	}
	require.Greater(t, len(sections), 18)
}

// The page lists every code that a run may fail with.
func TestReference_HasEveryCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Errors of a run\n")
	for _, code := range jig.Codes() {
		found := false
		for line := range strings.SplitSeq(table, "\n") {
			if strings.Contains(line, "`"+string(code)+"`") && strings.HasPrefix(line, "| `") {
				require.Equal(t, code.Retryable(), strings.HasSuffix(line, "| yes |"), line)
				found = true
			}
		}
		require.True(t, found, "%s is not on the page", code)
	}
}

// noteKeys adds the keys of all mappings in a value to keys.
func noteKeys(value any, keys map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			noteKeys(one, keys)
		}
	case map[string]any:
		for key, one := range v {
			keys[key] = true
			noteKeys(one, keys)
		}
	}
}

// keysOf returns the keys under which a type's fields are written.
func keysOf(of reflect.Type) []string {
	var keys []string
	for i := range of.NumField() {
		if key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}
