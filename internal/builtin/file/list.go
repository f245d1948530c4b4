package file

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

type listInput struct {
	Path      string `json:"path"                jsonschema:"folder to list, relative to the working directory; . is the working directory" maxLength:"4096" path:"true"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"list the folders below, too"`
	Glob      string `json:"glob,omitempty"      jsonschema:"keep paths that match, relative to path; ** stands for any folders"           maxLength:"1000"`
}

type listOutput struct {
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated" jsonschema:"there are more entries"`
}

type entry struct {
	Path string `json:"path" jsonschema:"relative to the working directory"`
	Type string `json:"type"                                               enum:"file,dir,symlink,other"`
	Size int64  `json:"size" jsonschema:"bytes of a file, 0 for anything else"`
}

// Summary implements tools.Summarizer.
func (o listOutput) Summary() string {
	if o.Truncated {
		return fmt.Sprintf("the first %d entries", len(o.Entries))
	}
	return fmt.Sprintf("%d entries", len(o.Entries))
}

func (f family) list(ctx context.Context, inv jig.Invocation, in listInput) (listOutput, error) {
	var out listOutput
	dir, err := f.dirs.Open(inv.Tenant)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	start, err := dir.Clean(in.Path)
	if err != nil {
		return out, err
	}
	info, err := dir.Stat(start)
	if err != nil {
		return out, dir.Explain(start, err)
	}
	if !info.IsDir() {
		return out, jig.Errorf(jig.CodeInvalidInput, "%q is not a folder", start).WithField("/path").
			WithReason("not_a_directory").WithHint("read a file with file.read")
	}
	list, more, err := walk(ctx, dir, start, in.Recursive, in.Glob)
	if err != nil {
		return out, err
	}
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.path, b.path) })
	out.Truncated = more || len(list) > MaxEntries
	for _, one := range list[:min(MaxEntries, len(list))] {
		out.Entries = append(out.Entries, describe(one))
	}
	return out, nil
}

func describe(f found) entry {
	e := entry{Path: f.path, Type: "other"}
	switch mode := f.dir.Type(); {
	case mode.IsRegular():
		e.Type = "file"
		if info, err := f.dir.Info(); err == nil { // the size of a file that has disappeared is 0
			e.Size = info.Size()
		}
	case mode.IsDir():
		e.Type = "dir"
	case mode&fs.ModeSymlink != 0:
		e.Type = "symlink"
	}
	return e
}
