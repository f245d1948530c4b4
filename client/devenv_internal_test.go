package client

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// devEnv writes a file of `make dev` below a folder and returns its path.
func devEnv(t *testing.T, dir, content string) string {
	t.Helper()
	file := filepath.Join(dir, DevEnvFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// A program in any folder of a project finds the servers that were started in the project's folder.
func TestFindDevEnv_LooksUpwards(t *testing.T) { //nolint:paralleltest // it changes the working directory
	project, other := t.TempDir(), t.TempDir()
	file := devEnv(t, project, "A=project\n")
	inner := filepath.Join(project, "cmd", "worker")
	require.NoError(t, os.MkdirAll(inner, 0o700))
	for name, row := range map[string]struct {
		dir     string
		environ []string
		value   string
		path    string
	}{
		"its own folder":       {project, nil, "project", DevEnvFile},
		"a folder below":       {inner, nil, "project", file},
		"another folder":       {other, nil, "", ""},
		"named":                {other, []string{EnvDevEnv + "=" + file}, "project", file},
		"named to be ignored":  {project, []string{EnvDevEnv + "="}, "", ""},
		"ignored from a below": {inner, []string{EnvDevEnv + "="}, "", ""},
	} {
		t.Chdir(row.dir)
		env, path, err := FindDevEnv(row.environ)
		require.NoError(t, err, name)
		require.Equal(t, row.value, env["A"], name)
		require.Equal(t, row.path, path, name)
	}

	t.Chdir(inner)
	nearer := devEnv(t, filepath.Dir(inner), "A=nearer\n")
	env, path, err := FindDevEnv(nil)
	require.NoError(t, err)
	require.Equal(t, "nearer", env["A"])
	require.Equal(t, nearer, path)

	_, _, err = FindDevEnv([]string{EnvDevEnv + "=" + file + ".none"})
	require.Equal(t, jig.CodeInvalidInput, jig.CodeOf(err))
	require.ErrorContains(t, err, "JIG_DEV_ENV names a file that does not exist")
}

// Somebody else's file above the current folder, for example in /tmp, is not used.
func TestFindDevEnv_IgnoresFilesOfOthers(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	file, inner := devEnv(t, project, "A=1\n"), filepath.Join(project, "inner")
	require.Equal(t, file, devEnvAbove(inner))
	info, err := os.Stat(file)
	require.NoError(t, err)
	me := os.Getuid()
	require.True(t, trusted(info, me))
	if owner, known := ownerOf(info); known && owner != 0 {
		require.False(t, trusted(info, me+1))
	}
	require.NoError(t, os.Chmod(file, 0o622))
	require.Empty(t, devEnvAbove(inner), "anybody can write to it")
	require.NoError(t, os.Chmod(file, 0o600))
	if me == 0 {
		require.NoError(t, os.Chown(file, 4711, 4711))
		info, err = os.Stat(file)
		require.NoError(t, err)
		require.False(t, trusted(info, 4712))
		require.True(t, trusted(info, 4711))
		require.Empty(t, devEnvAbove(inner), "it belongs to somebody else")
		require.NoError(t, os.Chown(file, 0, 0))
	}
	require.NoError(t, os.Rename(file, file+".real"))
	require.NoError(t, os.Symlink(file+".real", file))
	require.Empty(t, devEnvAbove(inner), "a link may lead anywhere")
}
