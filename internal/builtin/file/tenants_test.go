package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/file"
	"github.com/jig-run/jig/internal/workdir"
	"github.com/jig-run/jig/tools/tooltest"
)

// kitOf returns a kit whose calls belong to the tenant.
func kitOf(t *testing.T, dirs workdir.Dirs, tenant string) *tooltest.Kit {
	t.Helper()
	kit := tooltest.New(t, file.Tools(file.Options{Dirs: dirs})...)
	kit.Invocation.Tenant = tenant
	return kit
}

func TestFiles_AreSeparatedByTenant(t *testing.T) {
	t.Parallel()
	base, shared := t.TempDir(), t.TempDir()
	dirs := workdir.Dirs{Base: filepath.Join(base, "work"), Default: shared}
	tenants := map[string]*tooltest.Kit{}
	for _, tenant := range []string{"acme", "acme-2", jig.DefaultTenant} {
		tenants[tenant] = kitOf(t, dirs, tenant)
		tenants[tenant].Succeed("file.write", object{"path": "secret.txt", "content": "of " + tenant}, nil)
	}
	for tenant, kit := range tenants {
		var got readData
		kit.Succeed("file.read", object{"path": "secret.txt"}, &got)
		require.Equal(t, "of "+tenant, got.Content)
		var found struct{ Matches []object }
		kit.Succeed("file.grep", object{"pattern": "of "}, &found)
		require.Len(t, found.Matches, 1, tenant)
		for other := range tenants {
			if other == tenant {
				continue
			}
			for _, path := range []string{
				"../" + other + "/secret.txt", filepath.Join(base, "work", other, "secret.txt"), filepath.Join(shared, "secret.txt"),
			} {
				if tenant == jig.DefaultTenant && strings.HasPrefix(path, shared) {
					continue
				}
				require.Equal(t, jig.CodeNotPermitted, kit.Fail("file.read", object{"path": path}).Code, "%s reads %s", tenant, path)
				require.Equal(t, jig.CodeNotPermitted, kit.Fail("file.write", object{"path": path, "content": "x"}).Code, "%s writes %s", tenant, path)
				require.Equal(t, jig.CodeNotPermitted, kit.Fail("file.list", object{"path": filepath.Dir(path)}).Code, "%s lists %s", tenant, path)
			}
		}
	}
	info, err := os.Stat(filepath.Join(base, "work", "acme"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	// A link in place of a tenant's folder could lead into another tenant's folder.
	require.NoError(t, os.Symlink("acme", filepath.Join(base, "work", "guest")))
	require.Equal(t, jig.CodeUnavailable, kitOf(t, dirs, "guest").Fail("file.read", object{"path": "secret.txt"}).Code)
	for _, tenant := range []string{"", "..", "a/b", "Acme"} {
		require.Equal(t, jig.CodeInvalidInput, kitOf(t, dirs, tenant).Fail("file.read", object{"path": "secret.txt"}).Code, tenant)
	}
	require.Equal(t, jig.CodeMissingParam, kitOf(t, workdir.Dirs{}, "acme").Fail("file.read", object{"path": "x"}).Code)
}

func TestJigFolder_IsInvisible(t *testing.T) {
	t.Parallel()
	dir, kit := folder(t, map[string]string{
		".jig/dev.env": "password", ".JIG/upper.env": "password", "a/.Jig/deep.env": "password", "plain.txt": "password", "a/.jigger": "password",
	})
	require.NoError(t, os.Symlink(".jig", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(filepath.Join(".jig", "dev.env"), filepath.Join(dir, "direct.env")))
	for _, path := range []string{
		".jig/dev.env", ".JIG/upper.env", "./a/../.jig/dev.env", "a/.Jig/deep.env", filepath.Join(dir, ".jig", "dev.env"), "link/dev.env", "direct.env",
	} {
		require.Equal(t, "protected_path", kit.Fail("file.read", object{"path": path}).Reason, path)
		require.Equal(t, "protected_path", kit.Fail("file.write", object{"path": path, "content": "x"}).Reason, path)
		require.Equal(t, "protected_path", kit.Fail("file.grep", object{"path": path, "pattern": "password"}).Reason, path)
	}
	for _, path := range []string{".jig", ".JIG", "link"} {
		require.Equal(t, "protected_path", kit.Fail("file.list", object{"path": path}).Reason, path)
	}
	require.Equal(t, "protected_path", kit.Fail("file.write", object{"path": ".jIg/new/file", "content": "x"}).Reason)
	require.Equal(t, "protected_path", kit.Fail("file.write", object{"path": "link/new", "content": "x"}).Reason)
	var listed struct{ Entries []struct{ Path string } }
	for _, recursive := range []bool{false, true} {
		kit.Succeed("file.list", object{"path": ".", "recursive": recursive}, &listed)
		for _, e := range listed.Entries {
			require.NotContains(t, strings.Split(strings.ToLower(e.Path), "/"), ".jig")
		}
	}
	var found struct{ Matches []struct{ Path string } }
	kit.Succeed("file.grep", object{"pattern": "password"}, &found)
	require.Len(t, found.Matches, 2)
	for _, path := range []string{".git/hooks/x", ".GIT/hooks/x", "a/.Git/config"} {
		require.Equal(t, "protected_path", kit.Fail("file.write", object{"path": path, "content": "x"}).Reason, path)
	}
}

func TestWorkingDirectory_MustNotBeTheRoot(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	require.NoError(t, os.Symlink("/", root))
	for _, dirs := range []workdir.Dirs{{}, {Default: t.TempDir()}, {Base: "/"}, {Base: "/."}, {Base: root}, {Base: t.TempDir(), Default: "/"}} {
		require.ErrorContains(t, dirs.Check(), "JIG_WORKDIR", "%+v", dirs)
	}
	require.NoError(t, workdir.Dirs{Base: filepath.Join(t.TempDir(), "not", "made", "yet")}.Check())
}
