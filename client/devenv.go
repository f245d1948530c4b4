package client

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jig-run/jig"
)

// FindDevEnv reads the file in which `make dev` and jig-dev store the environment of what they started, and returns its variables and its
// path. It is the file that JIG_DEV_ENV in environ (in the form of [os.Environ]) names, or else .jig/dev.env in the current folder, or in
// the nearest folder above it that has one. Above the current folder, a file counts only if it belongs to the current user or to root, so
// that nobody else can redirect a program by a file in, for example, /tmp. Without a file, both results are empty.
func FindDevEnv(environ []string) (env map[string]string, path string, err error) {
	named, set := ParseEnviron(environ)[EnvDevEnv]
	switch {
	case set && named == "":
		return nil, "", nil
	case set:
		if env, err = ReadEnvFile(named); err == nil && env == nil {
			err = jig.Errorf(jig.CodeInvalidInput, "%s names a file that does not exist: %s", EnvDevEnv, named).WithField(EnvDevEnv).
				WithHint("`make dev` and jig-dev write it to " + DevEnvFile + " in the folder that they are started in; are they running?")
		}
		return env, named, err
	}
	if env, err = ReadEnvFile(DevEnvFile); env != nil || err != nil {
		return env, DevEnvFile, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, "", nil //nolint:nilerr // a folder that was removed has no folders above it
	}
	if path = devEnvAbove(dir); path == "" {
		return nil, "", nil
	}
	env, err = ReadEnvFile(path)
	return env, path, err
}

// devEnvAbove returns the path of the nearest file of `make dev` above a folder, or "".
func devEnvAbove(dir string) string {
	for above := filepath.Dir(dir); above != dir; dir, above = above, filepath.Dir(above) {
		path := filepath.Join(above, DevEnvFile)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && trusted(info, os.Getuid()) {
			return path
		}
	}
	return ""
}

// trusted reports whether a file belongs to the user or to root, and nobody else may write to it.
func trusted(info fs.FileInfo, user int) bool {
	owner, known := ownerOf(info)
	if !known {
		return true // the system has no owners in this form
	}
	return (owner == user || owner == 0) && info.Mode().Perm()&0o022 == 0
}
