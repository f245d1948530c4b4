package deps

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/jig-run/jig"
)

// cache locates the Go module cache, once.
type cache struct {
	set  string
	mu   sync.Mutex
	path string
}

func (c *cache) folder(ctx context.Context) (string, error) {
	if c.set != "" {
		return c.set, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		c.path = cmp.Or(os.Getenv("GOMODCACHE"), goEnv(ctx), underPath())
	}
	if c.path == "" {
		return "", jig.Errorf(jig.CodeUnavailable, "the Go module cache cannot be found").WithHint("set GOMODCACHE in the worker's environment")
	}
	return c.path, nil
}

// goEnv asks the go command, which also reads its own settings file; "" if there is no go command.
func goEnv(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func underPath() string {
	if list := filepath.SplitList(os.Getenv("GOPATH")); len(list) > 0 && list[0] != "" {
		return filepath.Join(list[0], "pkg", "mod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, "go", "pkg", "mod")
}
