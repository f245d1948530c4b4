package expr

// entitiesName is the variable of thin tools that holds what they work from.
const entitiesName = "entities"

// ThinUse is for the expressions of a thin tool. They read the call's `input`, the `entities` that the tool works from by name
// ({id, type, title, content, connected}; null for an optional one that was not given), the `tenant`, the `principal` ({id, groups,
// permissions}) that calls, and `now`. Somebody waits for what a thin tool gives back, so an evaluation may cost 100,000, work on
// 4 MiB and give 256 KiB; a source may have 4 KiB.
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

// ThinURLUse is for the link that a thin tool gives back. It reads, beside what ThinUse does, the `entity` that the tool has
// created ({id}) and the `session` of its extraction ({id}, empty when none was started); a result may have 4 KiB.
func ThinURLUse() Use {
	use := ThinUse()
	use.Name = "thin url"
	use.Variables = append(use.Variables, Variable{Name: entityName, Type: Map}, Variable{Name: "session", Type: Map})
	use.Limits.Result = 4 << 10
	return use
}

// ThinEnv is the environment of ThinUse. It is made once.
func ThinEnv() (*Env, error) { return stepEnvs.get(ThinUse()) }

// ThinURLEnv is the environment of ThinURLUse. It is made once.
func ThinURLEnv() (*Env, error) { return stepEnvs.get(ThinURLUse()) }
