package expr

// BudgetUse returns the use for the conditions of budgets. They read the `model` or the `tool` that is called, the `agent`, the `principal`,
// the `tenant` and the `session` that make the call, and `now`. The rules of a limit that is exhausted also read the `limit`. The bounds are
// those of policies.
func BudgetUse() Use {
	return Use{
		Name: "budget",
		Variables: []Variable{
			{Name: "model", Type: String},
			{Name: "tool", Type: String},
			{Name: "agent", Type: Map},
			{Name: "principal", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "session", Type: Map},
			{Name: "limit", Type: Map},
			{Name: "now", Type: Timestamp},
		},
		Limits: PolicyUse().Limits,
	}
}

// BudgetEnv returns the environment of [BudgetUse], which is cached.
func BudgetEnv() (*Env, error) { return stepEnvs.get(BudgetUse()) }
