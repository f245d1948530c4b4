package expr

import (
	"fmt"
	"slices"
)

// Type is the type that an expression may assume for a variable.
type Type int

// The types. Values of type Any are checked when the expression runs, others when it is compiled.
const (
	Any Type = iota
	Bool
	Int
	String
	// List has values of any type.
	List
	// Map has string keys and values of any type.
	Map
	// Timestamp is a point in time, such as a [time.Time] among the variables.
	Timestamp
)

// Variable is a name that expressions of a use may read.
type Variable struct {
	Name string
	Type Type
}

// Limits are the limits of the expressions of a use. Zero means the default.
type Limits struct {
	// Source is the longest source, in bytes. The default is 4 KiB.
	Source int
	// Cost is the maximum number of steps of the loops of one evaluation: elements times nodes of the body, charged before a loop begins.
	// The default is 1,000,000.
	Cost int64
	// Work is the maximum number of bytes that one evaluation may build, compare or scan. The default is 12 MiB.
	Work int64
	// Result is the largest result, in bytes of JSON. The default is 1 MiB.
	Result int
}

func (l Limits) withDefaults() Limits {
	if l.Source == 0 {
		l.Source = 4 << 10
	}
	if l.Cost == 0 {
		l.Cost = 1_000_000
	}
	if l.Work == 0 {
		l.Work = 12 << 20
	}
	if l.Result == 0 {
		l.Result = 1 << 20
	}
	return l
}

// Use declares the variables that the expressions in one place of a document may read, and their limits.
type Use struct {
	// Name identifies the environment in a [Cache]. It is not shown to people.
	Name      string
	Variables []Variable
	Limits    Limits
}

// ConcurrencyKeyUse returns the use for a tool's concurrency key, which reads the call's `input`.
func ConcurrencyKeyUse() Use {
	return Use{Name: "concurrency_key", Variables: []Variable{{Name: "input"}}}
}

// ScriptUse returns the use for the rules of a script model. For the contents of its variables see package model. A source may have 16 KiB,
// a result 4 MiB, and an evaluation may cost 10,000,000 steps and work on 20 MiB.
func ScriptUse() Use {
	return Use{
		Name: "script",
		Variables: []Variable{
			{Name: "input"},
			{Name: "session", Type: String},
			{Name: "task", Type: String},
			{Name: "pass", Type: Int},
			{Name: "calls", Type: List},
			{Name: "last", Type: List},
			{Name: "messages", Type: List},
			{Name: "vars", Type: Map},
			{Name: "item"},
			{Name: "index", Type: Int},
		},
		Limits: Limits{Source: 16 << 10, Cost: 10_000_000, Work: 20 << 20, Result: 4 << 20},
	}
}

// StepUse returns the use for the expressions of a composition's steps. They read the composition's `input`, the results of its `steps` by
// id, its `vars`, `item` and `index` in a loop, `error` where an error is handled, `event` where an event is awaited, and `session`,
// `tenant`, `principal` and `now`. The extra variables are further names, such as the name that a catch gives to its error; an extra
// variable replaces a variable of the same name. The limits are the defaults of [Limits].
func StepUse(extra ...Variable) Use {
	use := Use{
		Name: "step",
		Variables: []Variable{
			{Name: "input"},
			{Name: "steps", Type: Map},
			{Name: "vars", Type: Map},
			{Name: "item"},
			{Name: "index", Type: Int},
			{Name: "error"},
			{Name: "session", Type: Map},
			{Name: "tenant", Type: String},
			{Name: "principal", Type: Map},
			{Name: "now", Type: Timestamp},
			{Name: "event"},
		},
		Limits: Limits{}.withDefaults(),
	}
	for _, v := range extra {
		at := slices.IndexFunc(use.Variables, func(have Variable) bool { return have.Name == v.Name })
		switch {
		case at < 0:
			use.Variables = append(use.Variables, v)
		case use.Variables[at].Type == v.Type:
			continue
		default:
			use.Variables[at] = v
		}
		use.Name += fmt.Sprintf(" %s/%d", v.Name, v.Type)
	}
	return use
}

// ConcurrencyKeyEnv makes the environment of [ConcurrencyKeyUse].
func ConcurrencyKeyEnv() (*Env, error) { return NewEnv(ConcurrencyKeyUse()) }

// ScriptEnv makes the environment of [ScriptUse].
func ScriptEnv() (*Env, error) { return NewEnv(ScriptUse()) }
