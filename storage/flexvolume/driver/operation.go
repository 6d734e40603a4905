package driver

import (
	"fmt"
	"strconv"
)

// operation is how one operation is run.
type operation struct {
	has bool
	// count is how many arguments there are, and json the place of the JSON object among them, or -1.
	count, json int
	do          func(args []string, o Options) (answer, error)
}

// operations are all of the interface, by name.
func (d Driver) operations() map[string]operation {
	done := func(err error) (answer, error) { return answer{Status: success}, err }
	return map[string]operation{
		"init": {true, 0, -1, func([]string, Options) (answer, error) {
			a := answer{Status: success, Capabilities: d.capabilities()}
			if d.Init == nil {
				return a, nil
			}
			return a, d.Init()
		}},
		"getvolumename": {d.VolumeName != nil, 1, 0, func(_ []string, o Options) (answer, error) {
			name, err := d.VolumeName(o)
			return answer{Status: success, VolumeName: name}, err
		}},
		"attach": {d.Attach != nil, 2, 0, func(args []string, o Options) (answer, error) {
			device, err := d.Attach(o, args[1])
			return answer{Status: success, Device: device}, err
		}},
		"waitforattach": {d.WaitForAttach != nil, 2, 1, func(args []string, o Options) (answer, error) {
			device, err := d.WaitForAttach(args[0], o)
			return answer{Status: success, Device: device}, err
		}},
		"isattached": {d.IsAttached != nil, 2, 0, func(args []string, o Options) (answer, error) {
			attached, err := d.IsAttached(o, args[1])
			return answer{Status: success, Attached: &attached}, err
		}},
		"detach": {d.Detach != nil, 2, -1, func(args []string, _ Options) (answer, error) {
			return done(d.Detach(args[0], args[1]))
		}},
		"mountdevice": {d.MountDevice != nil, 3, 2, func(args []string, o Options) (answer, error) {
			return done(d.MountDevice(args[0], args[1], o))
		}},
		"unmountdevice": {d.UnmountDevice != nil, 1, -1, func(args []string, _ Options) (answer, error) {
			return done(d.UnmountDevice(args[0]))
		}},
		"mount": {d.Mount != nil, 2, 1, func(args []string, o Options) (answer, error) {
			return done(d.Mount(args[0], o))
		}},
		"unmount": {d.Unmount != nil, 1, -1, func(args []string, _ Options) (answer, error) {
			return done(d.Unmount(args[0]))
		}},
		"expandvolume": {d.ExpandVolume != nil, 4, 0, func(args []string, o Options) (answer, error) {
			newSize, oldSize, err := sizes(args[2], args[3])
			if err != nil {
				return answer{}, err
			}
			size, err := d.ExpandVolume(o, args[1], newSize, oldSize)
			return answer{Status: success, VolumeNewSize: size}, err
		}},
		"expandfs": {d.ExpandFS != nil, 5, 0, func(args []string, o Options) (answer, error) {
			newSize, oldSize, err := sizes(args[3], args[4])
			if err != nil {
				return answer{}, err
			}
			return done(d.ExpandFS(o, args[1], args[2], newSize, oldSize))
		}},
	}
}

// run reads the arguments and does the operation. A panic is a failure like others, so that there is always an answer.
func (op operation) run(args []string) (a answer) {
	var options Options
	defer func() {
		if problem := recover(); problem != nil {
			a = failure(fmt.Errorf("driver panicked: %v", problem), options.Secrets)
		}
	}()
	if len(args) != op.count {
		return failure(fmt.Errorf("operation takes %d arguments, %d were given", op.count, len(args)), nil)
	}
	if op.json >= 0 {
		var err error
		if options, err = ParseOptions(args[op.json]); err != nil {
			return failure(err, nil)
		}
	}
	a, err := op.do(args, options)
	if err != nil {
		return failure(err, options.Secrets)
	}
	return a
}

// capabilities follow from what the driver has.
func (d Driver) capabilities() *capabilities {
	attach := d.Attach != nil || d.Detach != nil || d.WaitForAttach != nil || d.IsAttached != nil
	return &capabilities{
		Attach:          attach,
		SELinuxRelabel:  !d.KeepLabel,
		SupportsMetrics: d.ReportUsage,
		FSGroup:         !d.KeepOwnership,
		// Without a device there is no file system that Kubernetes could grow.
		RequiresFSResize: attach || d.ExpandFS != nil,
	}
}

func sizes(newSize, oldSize string) (n, o int64, err error) {
	if n, err = strconv.ParseInt(newSize, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("read new size: %w", err)
	}
	if o, err = strconv.ParseInt(oldSize, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("read old size: %w", err)
	}
	return n, o, nil
}
