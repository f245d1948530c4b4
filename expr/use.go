package expr

import (
	"fmt"
	"slices"
)

// Type is what an expression may assume of a variable.
type Type int

// The types. Any is checked when the expression runs; the others already when it is compiled.
const (
	Any Type = iota
	Bool
	Int
	String
	// List holds values of any type.
	List
	// Map has string keys and values of any type.
	Map
	// Timestamp is a point in time; a time.Time of the variables is one.
	Timestamp
)

// Variable is a name that expressions of a use may read.
type Variable struct {
	Name string
	Type Type
}

// Limits bound the expressions of a use. Zero values mean the defaults.
type Limits struct {
	// Source is the longest source, in bytes; default 4 KiB.
	Source int
	// Cost is the most steps that the loops of one evaluation may take: elements times the nodes of the body, charged before
	// a loop begins; default 1,000,000.
	Cost int64
	// Work is the most that one evaluation may build, compare or scan, in bytes; default 12 MiB.
	Work int64
	// Result is the largest result, as JSON, in bytes; default 1 MiB.
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

// Use says what the expressions of one place in a document may read and how far they may go.
type Use struct {
	// Name tells environments apart in a Cache; it is not shown to people.
	Name      string
	Variables []Variable
	Limits    Limits
}

// ConcurrencyKeyUse is for a tool's concurrency key: it reads the call's `input`.
func ConcurrencyKeyUse() Use {
	return Use{Name: "concurrency_key", Variables: []Variable{{Name: "input"}}}
}

// ScriptUse is for the rules of a script model; see package model for what the variables hold. Its sources may be 16 KiB,
// its results 4 MiB, and an evaluation may cost 10,000,000.
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

// StepUse is for the expressions of a composition's steps. They read the composition's `input`, the results of its `steps` by
// id, its `vars`, in a loop `item` and `index`, where an error is handled `error`, where an event is awaited `event`, and
// `session`, `tenant`, `principal` and `now`. The extra variables are further names, such as the one that a catch gives to
// its error; an extra one replaces another of its name. The limits are the defaults of Limits.
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

// ConcurrencyKeyEnv is the environment of ConcurrencyKeyUse.
func ConcurrencyKeyEnv() (*Env, error) { return NewEnv(ConcurrencyKeyUse()) }

// ScriptEnv is the environment of ScriptUse.
func ScriptEnv() (*Env, error) { return NewEnv(ScriptUse()) }
