package temporalserver

import "syscall"

// attributes start a process in a group of its own, so that Ctrl-C in the terminal does not reach it, and have the kernel
// kill it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
