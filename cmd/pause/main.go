// Command pause is the process in a pod sandbox. It keeps alive the namespaces that the pod's
// containers share.
//
// If the containers share the PID namespace, pause is process 1 in that namespace and inherits all
// orphans. pause ignores SIGCHLD, so the kernel reaps each process that exits (wait(2), notes).
// This requires neither a loop nor memory.
//
// pause exits on SIGTERM and SIGINT through the Go runtime's default action. This action terminates
// even process 1, with exit status 2. Other processes exit with 143 and 130. With os/signal, the
// exit status would be 0, but each pod would require an additional 100 kB and two more threads.
package main

import (
	"syscall"
	"unsafe"
)

// sigIgn is SIG_IGN; see signal(7).
const sigIgn = 1

// sigaction is the kernel's struct sigaction for rt_sigaction(2). It is the same on amd64 and
// arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

func main() {
	action := sigaction{handler: sigIgn}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD),
		uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
	if errno != 0 {
		println("pause: ignore SIGCHLD:", errno.Error())
		syscall.Exit(1)
	}
	for {
		// Without file descriptors and a timeout, ppoll returns only when a signal arrives. The
		// runtime would report select{} as a deadlock.
		syscall.Syscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
