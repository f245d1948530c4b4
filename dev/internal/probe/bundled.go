package probe

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// Bundle is the bundle that some of the probes belong to. Tenants without it do not see them.
const Bundle = "uqshelf"

func bundledTools() []tools.Tool {
	stamp := read("uqshelf.stamp", "Stamps a book of the shelf. Only for tests.")
	glance := local("uqshelf.glance", "Looks at a book of the shelf in a local activity. Only for tests.")
	press := draft("uqshelf.press", "Presses a flower in a book of the shelf. Only for tests.", true)
	press.Permission = jig.PermissionWrite
	var list []tools.Tool
	for _, t := range []jig.Tool{stamp, glance, press} {
		t.Bundle = Bundle
		list = append(list, tools.New(t, echo))
	}
	return list
}
