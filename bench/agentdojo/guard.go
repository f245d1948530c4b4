package main

import (
	"context"
	"fmt"

	"github.com/jig-run/jig/internal/dataflow"
)

// guard decides on calls as an admission does.
type guard struct {
	// strict also asks about computed values.
	strict bool
}

// verdict is what the guard says about a call.
type verdict struct {
	asks     bool
	findings dataflow.Findings
}

// judge decides on the next call of a run.
func (g *guard) judge(_ context.Context, s *session, c call) (verdict, error) {
	t, ok := s.suite.tools[c.Tool]
	if !ok {
		return verdict{}, fmt.Errorf("no tool %s", c.Tool)
	}
	var v verdict
	if len(s.knowledge.Untrusted) == 0 {
		return v, nil
	}
	v.findings = dataflow.NewTracer(s.knowledge).Trace(c.Args, t.schema())
	v.asks = t.matters() && (len(v.findings.Untrusted) > 0 || g.strict && len(v.findings.Computed) > 0)
	return v, nil
}
