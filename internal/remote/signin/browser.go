package signin

import (
	"fmt"
	"os/exec"
	"runtime"
)

// CanOpen reports whether a browser can probably be opened on the user's screen. env is the environment.
func CanOpen(env map[string]string) bool {
	switch {
	case env["BROWSER"] != "":
		return true
	case env["SSH_CONNECTION"] != "" || env["SSH_TTY"] != "":
		return false
	case runtime.GOOS == "darwin" || runtime.GOOS == "windows":
		return true
	}
	return env["DISPLAY"] != "" || env["WAYLAND_DISPLAY"] != ""
}

// Open opens an address in the user's browser: the program in BROWSER, or the system's own.
func Open(env map[string]string, address string) error {
	program, args := "xdg-open", []string{address}
	switch {
	case env["BROWSER"] != "":
		program = env["BROWSER"]
	case runtime.GOOS == "darwin":
		program = "open"
	case runtime.GOOS == "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // the browser outlives the command
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }() //nolint:errcheck // its exit code does not matter
	return nil
}
