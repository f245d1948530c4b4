package temporalserver

import "syscall"

// attributes returns the attributes of the process. It runs in its own process group, so that Ctrl-C in the terminal does not reach
// it, and the kernel kills it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
