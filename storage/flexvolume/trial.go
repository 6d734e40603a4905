package flexvolume

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Trial is one call of a driver that is made to look at the driver, by a person or by a test of it.
type Trial struct {
	Operation Operation
	// Args follow the operation, as the driver gets them.
	Args []string
	// KillAfter is when the driver's process group is killed with SIGKILL, as in a crash; 0 is never.
	KillAfter time.Duration
	// Mark is a variable of the driver's environment, "NAME=value", by which its processes can be found; it may be empty.
	Mark string
}

// Outcome is everything about a call. Secrets are taken out of all text.
type Outcome struct {
	Operation Operation
	Args      []string
	Duration  time.Duration
	// ExitCode is -1 for a driver that was ended by a signal or was not started.
	ExitCode int
	// Killed: KillAfter has passed before the driver ended.
	Killed         bool
	Stdout, Stderr string
	// Leaked: the driver has printed a secret.
	Leaked bool
	// Status, Message and so on are the driver's answer, as far as there is one.
	Status, Message, Device, VolumeName string
	Attached                            bool
	VolumeNewSize                       int64
	Capabilities                        Capabilities
	// Err is how the engine takes it: nil, ErrNotSupported, or a CallError.
	Err error
}

// Try calls the driver at once, beside any other calls and whatever it is known to lack. Like any call it ends at the operation's deadline.
func (d *Driver) Try(ctx context.Context, trial Trial) Outcome {
	hide := redactor(secretsIn(trial.Args))
	result := Outcome{Operation: trial.Operation, ExitCode: -1}
	for _, arg := range trial.Args {
		result.Args = append(result.Args, hide(arg))
	}
	if d.path == "" {
		result.Err = d.fail(trial.Operation, KindStart, ErrGone.Error(), ErrGone)
		return result
	}
	path, args := d.path, slices.Concat([]string{string(trial.Operation)}, trial.Args)
	if trial.Mark != "" {
		// env replaces itself by the driver, which is therefore called by its own path.
		path, args = "/usr/bin/env", slices.Concat([]string{trial.Mark, d.path}, args)
	}
	ctx, cancel := context.WithTimeout(ctx, d.settings.timeout(trial.Operation))
	defer cancel()
	began := time.Now()
	process, err := start(path, args)
	if err != nil {
		result.Err = d.fail(trial.Operation, KindStart, err.Error(), err)
		return result
	}
	defer process.finish()
	if trial.KillAfter > 0 {
		group := -process.cmd.Process.Pid
		killer := time.AfterFunc(trial.KillAfter, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
		defer killer.Stop()
	}
	ended := process.wait(ctx)
	result.Duration = time.Since(began)
	if ended == nil {
		result.Killed = trial.KillAfter > 0 && killed(process.exit)
	}
	for deadline := time.Now().Add(reapGrace); result.Killed && groupLives(process.cmd.Process.Pid) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	// Who was killed answers no more.
	out := process.output(ended == nil && !result.Killed)
	if result.Killed {
		out.exit = process.exit
	}
	d.describe(&result, out, hide)
	switch {
	case errors.Is(ended, errFlood):
		result.Err = d.fail(trial.Operation, KindTooLong, "it did not stop printing, its process group was killed", ended)
	case ended != nil:
		result.Err = d.fail(trial.Operation, KindTimeout, "no answer within "+result.Duration.Round(time.Second).String()+", its process group was killed", ended)
	default:
		_, result.Err = d.judge(trial.Operation, out, hide)
	}
	return result
}

// describe fills in what the driver printed and how it ended.
func (d *Driver) describe(result *Outcome, out output, hide func(string) string) {
	result.Stdout, result.Stderr = hide(string(out.stdout)), hide(string(out.stderr))
	result.Leaked = result.Stdout != string(out.stdout) || result.Stderr != string(out.stderr)
	if said, problem := parse(out, hide); problem == nil {
		result.Status, result.Message = said.Status, hide(said.Message)
		result.Device, result.VolumeName, result.Attached = said.Device, said.VolumeName, said.Attached
		result.VolumeNewSize, result.Capabilities = said.VolumeNewSize, said.capabilities()
	}
	var failed *exec.ExitError
	switch {
	case out.exit == nil:
		result.ExitCode = 0
	case errors.As(out.exit, &failed):
		result.ExitCode = failed.ExitCode()
	}
}

// killed says whether a process was ended by SIGKILL.
func killed(exit error) bool {
	var failed *exec.ExitError
	if !errors.As(exit, &failed) {
		return false
	}
	status, ok := failed.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// secretsIn finds the secrets in a driver's arguments.
func secretsIn(args []string) map[string][]byte {
	secrets := map[string][]byte{}
	for _, arg := range args {
		var options map[string]any
		if json.Unmarshal([]byte(arg), &options) != nil {
			continue
		}
		for key, value := range options {
			text, isText := value.(string)
			if !isText || !strings.HasPrefix(key, secretPrefix) {
				continue
			}
			decoded, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				decoded = []byte(text)
			}
			secrets[key] = decoded
		}
	}
	return secrets
}

// secretPrefix begins the keys of secrets.
const secretPrefix = "kubernetes.io/secret/"

// Input is the JSON object that drivers get for every operation but mount.
func (v Volume) Input() (string, error) { return v.json() }

// Input is the JSON object that drivers get on mount.
func (m Mounting) Input() (string, error) { return m.json() }
