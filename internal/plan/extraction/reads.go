package extraction

import "github.com/jig-run/jig/internal/expr"

// reads lists the variables and members that the expressions of a task read.
type reads struct {
	tasks, content names
	// entity and input report whether these variables are read at all.
	entity, input bool
}

// names lists the members of a map that are read by name. all reports whether any member may be read.
type names struct {
	list []string
	all  bool
}

func (n names) any() bool { return n.all || len(n.list) > 0 }

func readsOf(r expr.Reads) reads {
	return reads{
		tasks: names{list: r.Tasks, all: r.AllTasks}, content: names{list: r.Content, all: r.AllContent},
		entity: r.Has("entity"), input: r.Has("input"),
	}
}
