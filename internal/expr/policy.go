package expr

import (
	_ "time/tzdata" // expressions name time zones, e.g. now.getHours('Europe/Berlin'), and containers lack a time zone database
)

// PolicyUse returns the use for the rules of a policy and the conditions of standing approvals. They read the `tool` and the requested
// `call`, its `input` (short for call.input), the `agent`, the `principal`, the `tenant` and the `session` that make the call, and `now`.
// Every rule of a policy is evaluated for every call, so an evaluation may cost at most 100,000 steps, work on 4 MiB and return 64 KiB. A
// source may have 4 KiB.
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

// PolicyEnv returns the environment of [PolicyUse], which is cached.
func PolicyEnv() (*Env, error) { return stepEnvs.get(PolicyUse()) }
