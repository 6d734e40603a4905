// Command pause is the process of a pod sandbox: it holds the namespaces that the containers of a
// pod share and does nothing.
//
// Where the pod shares its process namespace, pause is process 1 there and inherits every orphan.
// It tells the kernel to ignore SIGCHLD, and then the kernel itself reaps each child that ends
// (wait(2), notes): no loop, no memory.
//
// It ends on SIGTERM and SIGINT by the default action of the Go runtime, which ends a process 1 too
// (exit status 2; 143 and 130 elsewhere). os/signal would give a status of 0 for 100 kB and two
// threads more in each pod of the host.
package main

import (
	"syscall"
	"unsafe"
)

// sigIgn is SIG_IGN of signal(7).
const sigIgn = 1

// sigaction is the kernel's struct sigaction of rt_sigaction(2), the same on amd64 and arm64.
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
		// Without descriptors and without a timeout ppoll only returns for a signal. (select{}
		// would be reported as a deadlock.)
		syscall.Syscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
