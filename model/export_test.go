package model

import (
	"encoding/json"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// CheckScript compiles every expression of a script and returns all problems, each with its path, e.g. "rules[2].calls[0].input.path".
func CheckScript(script json.RawMessage) []expr.Problem {
	env, err := expr.ScriptUse().Env()
	if err != nil {
		return []expr.Problem{{Err: jig.AsError(err)}}
	}
	_, problems := compileScript(env, script)
	return problems
}
