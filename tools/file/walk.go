package file

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools/workdir"
)

// found is an entry of the working directory.
type found struct {
	path string
	dir  fs.DirEntry
}

// walk visits what is below start, start itself left out: its own entries, or with recursive everything but .git. glob, when
// set, is matched against the path relative to start. Folders that cannot be read are passed over. It reports whether it
// stopped because there is too much.
func walk(ctx context.Context, dir *workdir.Dir, start string, recursive bool, glob string) ([]found, bool, error) {
	if glob != "" && !doublestar.ValidatePattern(glob) {
		return nil, false, jig.Errorf(jig.CodeInvalidInput, "%q is not a glob pattern", glob).WithField("/glob").
			WithHint("use * within a name, ** for any folders, {a,b} and [a-z]")
	}
	recursive = recursive || strings.Contains(glob, "/") || strings.Contains(glob, "**")
	var list []found
	visited := 0
	err := fs.WalkDir(dir.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name == start {
			return err
		}
		if err != nil {
			return fs.SkipDir
		}
		if entry.IsDir() && entry.Name() == ".git" && recursive {
			return fs.SkipDir
		}
		if visited++; visited > maxVisited {
			return fs.SkipAll
		}
		relative := strings.TrimPrefix(name, start+"/")
		if glob == "" || doublestar.MatchUnvalidated(glob, relative) {
			list = append(list, found{path: path.Clean(name), dir: entry})
		}
		if entry.IsDir() && !recursive {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, false, fmt.Errorf("walk: %w", ctx.Err())
		}
		return nil, false, dir.Explain(start, err)
	}
	return list, visited > maxVisited, nil
}
