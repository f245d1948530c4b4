//go:build unix && !linux

package temporalserver

import "syscall"

// attributes returns the attributes of the process. It runs in its own process group, so that Ctrl-C in the terminal does not reach
// it. It ends with this process because its standard input ends then.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
