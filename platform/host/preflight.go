package host

import (
	"context"
	"io"

	"github.com/slipway-platform/slipway/platform/preflight"
)

// The minimum resources that a host requires, in bytes.
const (
	minMemoryBytes = 1536 << 20
	minDiskBytes   = 2 << 30
)

// Preflight checks the machine and prints all problems. It returns an error if a problem prevents
// the cluster from working. Warnings do not cause an error.
func (h *Host) Preflight(ctx context.Context, out io.Writer) error {
	requirements, err := h.requirements()
	if err != nil {
		return err
	}
	return preflight.Report(out, preflight.Run(ctx, requirements, preflight.ThisMachine()))
}

// MachineProblems checks the machine while the host is running and returns all problems.
func (h *Host) MachineProblems(ctx context.Context) ([]preflight.Problem, error) {
	requirements, err := h.requirements()
	if err != nil {
		return nil, err
	}
	// The running host itself uses the ports, the sockets and most of the memory, so they are not
	// checked.
	requirements.Ports, requirements.Sockets, requirements.Memory = nil, nil, 0
	return preflight.Run(ctx, requirements, preflight.ThisMachine()), nil
}

// requirements returns the requirements that this host's machine must meet.
func (h *Host) requirements() (preflight.Requirements, error) {
	bindingsOf := h.Bindings
	switch {
	case h.Joined():
		bindingsOf = h.NodeBindings
	case h.SeveralMasters():
		bindingsOf = h.MasterBindings
	}
	bindings, err := bindingsOf(h.File)
	if err != nil {
		return preflight.Requirements{}, err
	}
	var ports []preflight.Port
	for _, binding := range bindings {
		ports = append(ports, preflight.Port(binding))
	}
	requirements := preflight.Requirements{
		NodeName:      h.Node.NodeName,
		Programs:      preflight.Programs(),
		ImagePrograms: preflight.ImagePrograms(),
		Ports:         ports,
		Directories: []preflight.Directory{
			{Path: h.DataDir, Free: minDiskBytes, Programs: true},
			{Path: h.Node.Slipway.ContainerdDirectory, Free: minDiskBytes},
			{Path: h.Node.VolumeDirectory, Free: minDiskBytes},
		},
		Sockets: []string{h.Socket(), h.ContainerdSocket(), h.ImageSocket()},
		Memory:  minMemoryBytes,
	}
	if !h.Joined() {
		requirements.Directories = append(requirements.Directories, preflight.Directory{Path: h.Master.EtcdDirectory(), Free: minDiskBytes})
		requirements.Sockets = append(requirements.Sockets, h.EtcdSocket())
	}
	return requirements, nil
}
