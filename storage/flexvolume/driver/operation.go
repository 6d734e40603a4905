package driver

import (
	"fmt"
	"strconv"
)

// operation describes how to run one operation.
type operation struct {
	supported bool
	// argCount is the number of arguments. optionsIndex is the index of the argument that is the
	// JSON object, or -1.
	argCount, optionsIndex int
	call                   func(args []string, o Options) (response, error)
}

// operations returns all operations of the interface, keyed by name.
func (d Driver) operations() map[string]operation {
	status := func(err error) (response, error) { return response{Status: statusSuccess}, err }
	return map[string]operation{
		"init": {true, 0, -1, func([]string, Options) (response, error) {
			resp := response{Status: statusSuccess, Capabilities: d.capabilities()}
			if d.Init == nil {
				return resp, nil
			}
			return resp, d.Init()
		}},
		"getvolumename": {d.VolumeName != nil, 1, 0, func(_ []string, o Options) (response, error) {
			name, err := d.VolumeName(o)
			return response{Status: statusSuccess, VolumeName: name}, err
		}},
		"attach": {d.Attach != nil, 2, 0, func(args []string, o Options) (response, error) {
			device, err := d.Attach(o, args[1])
			return response{Status: statusSuccess, Device: device}, err
		}},
		"waitforattach": {d.WaitForAttach != nil, 2, 1, func(args []string, o Options) (response, error) {
			device, err := d.WaitForAttach(args[0], o)
			return response{Status: statusSuccess, Device: device}, err
		}},
		"isattached": {d.IsAttached != nil, 2, 0, func(args []string, o Options) (response, error) {
			attached, err := d.IsAttached(o, args[1])
			return response{Status: statusSuccess, Attached: &attached}, err
		}},
		"detach": {d.Detach != nil, 2, -1, func(args []string, _ Options) (response, error) {
			return status(d.Detach(args[0], args[1]))
		}},
		"mountdevice": {d.MountDevice != nil, 3, 2, func(args []string, o Options) (response, error) {
			return status(d.MountDevice(args[0], args[1], o))
		}},
		"unmountdevice": {d.UnmountDevice != nil, 1, -1, func(args []string, _ Options) (response, error) {
			return status(d.UnmountDevice(args[0]))
		}},
		"mount": {d.Mount != nil, 2, 1, func(args []string, o Options) (response, error) {
			return status(d.Mount(args[0], o))
		}},
		"unmount": {d.Unmount != nil, 1, -1, func(args []string, _ Options) (response, error) {
			return status(d.Unmount(args[0]))
		}},
		"expandvolume": {d.ExpandVolume != nil, 4, 0, func(args []string, o Options) (response, error) {
			newSize, oldSize, err := parseSizes(args[2], args[3])
			if err != nil {
				return response{}, err
			}
			size, err := d.ExpandVolume(o, args[1], newSize, oldSize)
			return response{Status: statusSuccess, VolumeNewSize: size}, err
		}},
		"expandfs": {d.ExpandFS != nil, 5, 0, func(args []string, o Options) (response, error) {
			newSize, oldSize, err := parseSizes(args[3], args[4])
			if err != nil {
				return response{}, err
			}
			return status(d.ExpandFS(o, args[1], args[2], newSize, oldSize))
		}},
	}
}

// run parses the arguments and runs the operation. A panic becomes a failure, so that there is
// always a response.
func (op operation) run(args []string) (resp response) {
	var options Options
	defer func() {
		if cause := recover(); cause != nil {
			resp = failure(fmt.Errorf("driver panicked: %v", cause), options.Secrets)
		}
	}()
	if len(args) != op.argCount {
		return failure(fmt.Errorf("operation takes %d arguments, got %d", op.argCount, len(args)), nil)
	}
	if op.optionsIndex >= 0 {
		var err error
		if options, err = ParseOptions(args[op.optionsIndex]); err != nil {
			return failure(err, nil)
		}
	}
	resp, err := op.call(args, options)
	if err != nil {
		return failure(err, options.Secrets)
	}
	return resp
}

// capabilities derives the capabilities from the functions that are set.
func (d Driver) capabilities() *capabilities {
	attach := d.Attach != nil || d.Detach != nil || d.WaitForAttach != nil || d.IsAttached != nil
	return &capabilities{
		Attach:          attach,
		SELinuxRelabel:  !d.KeepLabel,
		SupportsMetrics: d.ReportUsage,
		FSGroup:         !d.KeepOwnership,
		// Without a device, Kubernetes has no file system to expand.
		RequiresFSResize: attach || d.ExpandFS != nil,
	}
}

func parseSizes(newSize, oldSize string) (n, o int64, err error) {
	if n, err = strconv.ParseInt(newSize, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("parse new size: %w", err)
	}
	if o, err = strconv.ParseInt(oldSize, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("parse old size: %w", err)
	}
	return n, o, nil
}
