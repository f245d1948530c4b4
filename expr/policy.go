package expr

import (
	_ "time/tzdata" // expressions name time zones, e.g. now.getHours('Europe/Berlin'), and a container has no database of them
)

// PolicyUse is for the rules of a policy and the conditions of standing approvals. They read the `tool` and the `call` that is
// asked for, its `input` (call.input for short), the `agent`, the `principal`, the `tenant` and the `session` that ask, and `now`. Every rule of a policy is evaluated for every call, so one
// may cost 100,000, work on 4 MiB and give 64 KiB; its source may be 4 KiB.
func PolicyUse() Use {
	return Use{
		Name: "policy",
		Variables: []Variable{
			{Name: "tool", Type: Map},
			{Name: "call", Type: Map},
			{Name: "input", Type: Map},
			{Name: "agent", Type: Map},
			{Name: "principal", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "session", Type: Map},
			{Name: "now", Type: Timestamp},
		},
		Limits: Limits{Source: 4 << 10, Cost: 100_000, Work: 4 << 20, Result: 64 << 10},
	}
}

// PolicyEnv is the environment of PolicyUse. It is made once.
func PolicyEnv() (*Env, error) { return stepEnvs.get(PolicyUse()) }
