package file

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/pattern"
	"github.com/jig-run/jig/internal/workdir"
)

// found is an entry of the working directory.
type found struct {
	path string
	dir  fs.DirEntry
}

// walk lists what is below start, without start itself: only the entries of start or, if recursive is set, everything except .git. It
// never visits .jig. If glob is set, it is matched against the path relative to start. Unreadable folders are skipped. The result reports
// whether walk stopped because there were too many entries.
func walk(ctx context.Context, dir *workdir.Dir, start string, recursive bool, glob string) ([]found, bool, error) {
	var wanted *pattern.Pattern
	if glob != "" {
		var err error
		if wanted, err = pattern.Glob(glob); err != nil {
			return nil, false, jig.Errorf(jig.CodeInvalidInput, "the glob cannot be used: %w", err).WithField("/glob").
				WithHint("use * within a name, ** for any folders, {a,b} and [a-z]")
		}
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
		if entry.IsDir() && strings.EqualFold(entry.Name(), ".git") && recursive {
			return fs.SkipDir
		}
		if strings.EqualFold(entry.Name(), workdir.Private) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if visited++; visited > maxVisited {
			return fs.SkipAll
		}
		relative := strings.TrimPrefix(name, start+"/")
		matches := wanted == nil
		if !matches {
			if matches, err = wanted.Match(ctx, []byte(relative)); err != nil {
				return err
			}
		}
		if matches {
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
