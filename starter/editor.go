package starter

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// editText lets the person change a text in the editor that VISUAL or EDITOR names (default: vi), and returns what was saved.
func (a *app) editText(ctx context.Context, text string) ([]byte, error) {
	words := strings.Fields(cmp.Or(strings.TrimSpace(a.env["VISUAL"]), strings.TrimSpace(a.env["EDITOR"]), "vi"))
	file, err := os.CreateTemp("", "jig-*.json") // only the user can read it
	if err != nil {
		return nil, fmt.Errorf("make a file for the editor: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("write a file for the editor: %w", err)
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file.Name())...) //nolint:gosec // the user names the editor
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = a.environ, a.stdin, a.stderr, a.stderr
	if err := cmd.Run(); err != nil {
		return nil, usagef("the editor %s failed: %w; set EDITOR to another one", words[0], err)
	}
	changed, err := os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("read the file of the editor: %w", err)
	}
	return changed, nil
}
