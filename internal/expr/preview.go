package expr

// PreviewUse returns the use for the preview in a document. Its expressions read the call's `input`, the `tenant`, the calling `principal`
// ({id, groups, permissions}), and `read`, which holds the output of the preview's call as data. They do not read the time, because two
// previews of the same state must be equal. The limits are those of [ThinUse].
func PreviewUse() Use {
	return Use{
		Name: "preview",
		Variables: []Variable{
			{Name: "input"},
			{Name: "read", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "principal", Type: Map},
		},
		Limits: ThinUse().Limits,
	}
}

// PreviewEnv returns the environment of [PreviewUse], which is cached.
func PreviewEnv() (*Env, error) { return stepEnvs.get(PreviewUse()) }
