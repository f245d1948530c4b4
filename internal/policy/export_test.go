package policy

import "github.com/jig-run/jig"

// BaseRuling returns the ruling on calls of a tool to which no rule applies.
func BaseRuling(tool jig.Tool) Ruling { return baseVerdict(tool).ruling() }
