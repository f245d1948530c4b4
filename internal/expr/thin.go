package expr

// entitiesName is the variable of thin tools with the entities that the tool starts from.
const entitiesName = "entities"

// ThinUse returns the use for the expressions of a thin tool. They read the call's `input`, the `entities` that the tool starts from by
// name ({id, type, title, content, connected}; null for an optional one that was not given), the `tenant`, the calling `principal` ({id,
// groups, permissions}), and `now`. A person waits for the result of a thin tool, so an evaluation may cost at most 100,000 steps, work on
// 4 MiB and return 256 KiB. A source may have 4 KiB.
func ThinUse() Use {
	return Use{
		Name: "thin",
		Variables: []Variable{
			{Name: "input"},
			{Name: entitiesName, Type: Map},
			{Name: "tenant", Type: String},
			{Name: "principal", Type: Map},
			{Name: "now", Type: Timestamp},
		},
		Limits: Limits{Source: 4 << 10, Cost: 100_000, Work: 4 << 20, Result: 256 << 10},
	}
}

// ThinURLUse returns the use for the link that a thin tool returns. In addition to what [ThinUse] offers, it reads the `entity` that the
// tool has created ({id}) and the `session` of its extraction ({id}, empty if none was started). A result may have 4 KiB.
func ThinURLUse() Use {
	use := ThinUse()
	use.Name = "thin url"
	use.Variables = append(use.Variables, Variable{Name: entityName, Type: Map}, Variable{Name: "session", Type: Map})
	use.Limits.Result = 4 << 10
	return use
}

// ThinEnv returns the environment of [ThinUse], which is cached.
func ThinEnv() (*Env, error) { return stepEnvs.get(ThinUse()) }

// ThinURLEnv returns the environment of [ThinURLUse], which is cached.
func ThinURLEnv() (*Env, error) { return stepEnvs.get(ThinURLUse()) }
