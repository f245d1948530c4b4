package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/prompt"
	"github.com/jig-run/jig/internal/modeltest"
	"github.com/jig-run/jig/spec"
)

func withSkill(skill spec.Skill) func(*prompt.Options) {
	return func(o *prompt.Options) { o.Skills = skills{"default/" + skill.Name: skill} }
}

func TestSkill_InstructsTheModel(t *testing.T) {
	t.Parallel()
	notes := spec.Skill{
		Name: "release-notes", Description: "d", Instructions: "Write release notes.\n",
		Files: map[string]string{"style/tone.md": "Be brief.\n", "example.md": "# 1.0"},
	}
	bothProviders(t, func(t *testing.T, name string) {
		t.Helper()
		s := modeltest.New(t, modeltest.Text("Notes."), modeltest.Text(`{"title":"1.1"}`))
		kit := kitOver(t, s, withSkill(notes))
		var got answer
		kit.Succeed("prompt.skill", map[string]any{"skill": "release-notes", "model": name, "prompt": "For 1.1.", "system": "In French."}, &got)
		require.Equal(t, "Notes.", *got.Text)
		require.Equal(t, "Write release notes.\n\n<file path=\"example.md\">\n# 1.0\n</file>\n\n<file path=\"style/tone.md\">\nBe brief.\n</file>\n\nIn French.",
			s.Requests()[0].System)
		require.Equal(t, "For 1.1.", s.Requests()[0].Last().Text)

		kit.Succeed("prompt.skill", map[string]any{"skill": "release-notes", "model": name, "prompt": "?", "schema": json.RawMessage(titled)}, &got)
		require.JSONEq(t, `{"title":"1.1"}`, string(got.Output))
		require.True(t, strings.HasPrefix(s.Requests()[1].System, "Write release notes."))
		require.True(t, strings.HasSuffix(s.Requests()[1].System, titled))
	})
}

func TestSkill_LeavesOutFilesThatDoNotFit(t *testing.T) {
	t.Parallel()
	big := spec.Skill{Name: "big", Instructions: "Read.", Files: map[string]string{
		"a.md": strings.Repeat("a", 200<<10), "b.md": strings.Repeat("b", 100<<10), "c.md": "the last", "d.md": strings.Repeat("d", 56<<10),
	}}
	s := modeltest.New(t, modeltest.Text("ok"))
	kitOver(t, s, withSkill(big)).Succeed("prompt.skill", map[string]any{"skill": "big", "model": "anthropic/m", "prompt": "?"}, nil)
	system := s.Requests()[0].System
	require.Contains(t, system, `<file path="a.md">`)
	require.Contains(t, system, "<file path=\"c.md\">\nthe last\n</file>")
	require.NotContains(t, system, "bb")
	require.NotContains(t, system, "dd")
	require.True(t, strings.HasSuffix(system, "too long: b.md, d.md"), system[len(system)-100:])
}

func TestSkill_MustExist(t *testing.T) {
	t.Parallel()
	s := modeltest.New(t)
	kit := kitOver(t, s, withSkill(spec.Skill{Name: "release-notes"}))
	e := kit.Fail("prompt.skill", map[string]any{"skill": "release-note", "model": "anthropic/m", "prompt": "?"})
	require.Equal(t, jig.CodeNotFound, e.Code)
	require.Equal(t, "/skill", e.Field)
	require.Equal(t, "did you mean release-notes?", e.Hint)
	require.True(t, e.NotExecuted)

	kit.Invocation.Tenant = "other"
	e = kit.Fail("prompt.skill", map[string]any{"skill": "release-notes", "model": "anthropic/m", "prompt": "?"})
	require.Equal(t, jig.CodeNotFound, e.Code)
	e = kit.Fail("prompt.skill", map[string]any{"model": "anthropic/m", "prompt": "?"})
	require.Equal(t, jig.CodeMissingParam, e.Code)
	require.Equal(t, "/skill", e.Field)
	require.Empty(t, s.Requests())
}

type away struct{ err error }

func (a away) Skill(context.Context, string, string) (spec.Skill, error) { return spec.Skill{}, a.err }

func TestSkills_Unavailable(t *testing.T) {
	t.Parallel()
	s := modeltest.New(t)
	input := map[string]any{"skill": "x", "model": "anthropic/m", "prompt": "?"}
	for want, err := range map[jig.Code]error{
		jig.CodeUnavailable: jig.Errorf(jig.CodeUnavailable, "the database is away"),
		jig.CodeInternal:    errors.New("a bug"),
	} {
		e := kitOver(t, s, func(o *prompt.Options) { o.Skills = away{err} }).Fail("prompt.skill", input)
		require.Equal(t, want, e.Code)
	}
}

func TestTools_HaveContracts(t *testing.T) {
	t.Parallel()
	kit := kitOver(t, modeltest.New(t))
	for _, name := range []string{"prompt.direct", "prompt.skill"} {
		c, ok := kit.Registry.Tool(name)
		require.True(t, ok)
		require.Equal(t, "go", c.Implementation)
		require.Equal(t, jig.PermissionDraft, c.Permission)
		require.Equal(t, jig.RiskSafe, c.Risk)
		require.Equal(t, jig.ExecutionActivity, c.Execution)
		require.True(t, c.Idempotent)
		require.Equal(t, prompt.Timeout, c.Timeout)
		require.Equal(t, prompt.MaxAttempts, c.MaxAttempts)
	}
	c, ok := kit.Registry.Tool("agent.run")
	require.True(t, ok)
	require.Equal(t, "agent", c.Implementation)
	require.Equal(t, jig.PermissionDraft, c.Permission)
	require.Equal(t, jig.RiskModerate, c.Risk)
	require.True(t, c.Idempotent)
	require.Equal(t, prompt.AgentTimeout, c.Timeout)
	again, _ := kitOver(t, modeltest.New(t)).Registry.Tool("prompt.direct")
	direct, _ := kit.Registry.Tool("prompt.direct")
	require.Equal(t, again.Version, direct.Version)
}

func TestAgentRun_OnlyDefinesAContract(t *testing.T) {
	t.Parallel()
	kit := kitOver(t, modeltest.New(t))
	require.NoError(t, kit.Registry.Validate("agent.run", []byte(`{"agent":"reviewer","task":"Look.","input":{"a":[1]},"model":"openai/m"}`)))
	for field, input := range map[string]string{
		"/agent": `{"task":"Look."}`, "/input": `{"agent":"reviewer","input":[1]}`, "/schema": `{"agent":"reviewer","schema":{}}`,
	} {
		e := jig.AsError(kit.Registry.Validate("agent.run", []byte(input)))
		require.NotNil(t, e, input)
		require.Equal(t, field, e.Field)
	}
	e := kit.Fail("agent.run", json.RawMessage(`{"agent":"reviewer","task":"Look."}`))
	require.Equal(t, jig.CodeInternal, e.Code)
	require.Contains(t, e.Message, "session of the agent")
	require.True(t, e.NotExecuted)
}
