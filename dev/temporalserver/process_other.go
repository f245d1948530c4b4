//go:build unix && !linux

package temporalserver

import "syscall"

// attributes start a process in a group of its own, so that Ctrl-C in the terminal does not reach it. It ends with us
// because its standard input does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
