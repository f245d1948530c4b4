package expr

// RateLimitUse returns the use for the conditions and keys of rate limits. They read the `tool` that is called, its `input`, and the `agent`, the
// `principal`, the `tenant` and the `session` that make the call. The bounds are those of policies.
func RateLimitUse() Use {
	return Use{
		Name: "rate limit",
		Variables: []Variable{
			{Name: "tool", Type: String},
			{Name: "input", Type: Map},
			{Name: "agent", Type: Map},
			{Name: "principal", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "session", Type: Map},
		},
		Limits: PolicyUse().Limits,
	}
}

// RateLimitEnv returns the environment of [RateLimitUse], which is cached.
func RateLimitEnv() (*Env, error) { return stepEnvs.get(RateLimitUse()) }
