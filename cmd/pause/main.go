// Command pause is the process of a pod sandbox. It keeps the namespaces that the containers of a
// pod share.
//
// If the containers share the process namespace, pause is process 1 in it and inherits every
// orphan. pause ignores SIGCHLD, so that the kernel reaps each process that ends (wait(2), notes).
// This needs no loop and no memory.
//
// pause ends on SIGTERM and SIGINT by the default action of the Go runtime, which also ends a
// process 1 (with exit status 2; other processes get 143 and 130). With os/signal the status would
// be 0, but each pod would need 100 kB and two threads more.
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
		// Without descriptors and without a timeout, ppoll returns only when a signal arrives. The
		// runtime would report select{} as a deadlock.
		syscall.Syscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
