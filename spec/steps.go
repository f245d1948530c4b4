package spec

// actions are the keys that make a step do something; each step has exactly one.
var actions = []string{
	"tool", "prompt", "task", "composition", "steps", "parallel", "switch", "set", "wait", "wait_until", "wait_for", "emit", "fail",
}
