package flexvolume

import (
	"cmp"
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

// Trial is a single call for diagnosing or testing a driver.
type Trial struct {
	Operation Operation
	// Args lists the arguments that follow the operation.
	Args []string
	// KillAfter is the delay after which SIGKILL is sent to the driver's process group to simulate
	// a crash. If it is 0, the process group is not killed.
	KillAfter time.Duration
	// Env, if not empty, is an additional environment variable, in the form "NAME=value", that
	// identifies the driver's processes.
	Env string
	// Dir is the driver's working directory. If Dir is empty, the working directory is "/", as in
	// all other calls.
	Dir string
}

// TrialResult is a complete description of a call. Secrets are redacted from all text.
type TrialResult struct {
	Operation Operation
	Args      []string
	Duration  time.Duration
	// ExitCode is -1 if the driver was terminated by a signal or did not start.
	ExitCode int
	// Killed is set if KillAfter elapsed before the driver exited.
	Killed         bool
	Stdout, Stderr string
	// OneObject is set if standard output consists of exactly one JSON object.
	OneObject bool
	// Leaked is set if the driver printed a secret of at least 8 bytes. Shorter values can appear
	// in output by chance.
	Leaked bool
	// The fields from Status to Capabilities are from the driver's response. They are empty if the
	// response is missing or invalid.
	Status, Message, Device, VolumeName string
	Attached                            bool
	VolumeNewSize                       int64
	Capabilities                        Capabilities
	// Err is the call's result: nil, ErrNotSupported or a CallError.
	Err error
}

// Try calls the driver immediately. It does not wait for other calls, and calls operations even if
// the driver does not support them. The operation's deadline applies.
func (d *Driver) Try(ctx context.Context, trial Trial) TrialResult {
	secrets := secretsIn(trial.Args)
	redact := redactor(secrets)
	result := TrialResult{Operation: trial.Operation, ExitCode: -1}
	for _, arg := range trial.Args {
		result.Args = append(result.Args, redact(arg))
	}
	if d.path == "" {
		result.Err = d.fail(trial.Operation, KindStart, ErrGone.Error(), ErrGone)
		return result
	}
	path, args := d.path, slices.Concat([]string{string(trial.Operation)}, trial.Args)
	if trial.Env != "" {
		// The env program replaces itself with the driver by calling execve, so the driver receives
		// its own path as its name.
		path, args = "/usr/bin/env", slices.Concat([]string{trial.Env, d.path}, args)
	}
	ctx, cancel := context.WithTimeout(ctx, d.settings.timeout(trial.Operation))
	defer cancel()
	start := time.Now()
	process, err := startProcess(path, args, cmp.Or(trial.Dir, workingDir))
	if err != nil {
		result.Err = d.fail(trial.Operation, KindStart, err.Error(), err)
		return result
	}
	defer process.close()
	if trial.KillAfter > 0 {
		group := -process.cmd.Process.Pid
		killer := time.AfterFunc(trial.KillAfter, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
		defer killer.Stop()
	}
	waitErr := process.wait(ctx)
	result.Duration = time.Since(start)
	if waitErr == nil {
		result.Killed = trial.KillAfter > 0 && killed(process.exit)
	}
	for deadline := time.Now().Add(killTimeout); result.Killed && groupAlive(process.cmd.Process.Pid) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	// Do not wait for a killed driver's late response.
	out := process.output(waitErr == nil && !result.Killed)
	if result.Killed {
		out.exit = process.exit
	}
	result.describe(out, secrets)
	switch {
	case errors.Is(waitErr, errOutputLimit):
		result.Err = d.fail(trial.Operation, KindTooLong, "it printed too much output, its process group was killed", waitErr)
	case waitErr != nil:
		result.Err = d.fail(trial.Operation, KindTimeout, "no response within "+result.Duration.Round(time.Second).String()+", its process group was killed", waitErr)
	default:
		_, result.Err = d.interpret(trial.Operation, out, redact)
	}
	return result
}

// describe fills in the driver's output, response and exit code.
func (result *TrialResult) describe(out output, secrets map[string][]byte) {
	stdout, stderr := string(out.stdout), string(out.stderr)
	redact, redactLong := redactor(secrets), redactor(longSecrets(secrets))
	result.Stdout, result.Stderr = redact(stdout), redact(stderr)
	result.Leaked = redactLong(stdout) != stdout || redactLong(stderr) != stderr
	object := strings.TrimSpace(stdout)
	result.OneObject = strings.HasPrefix(object, "{") && json.Valid([]byte(object))
	if resp, respErr := parse(out, redact); respErr == nil {
		result.Status, result.Message = resp.Status, redact(resp.Message)
		result.Device, result.VolumeName, result.Attached = resp.Device, resp.VolumeName, resp.Attached
		result.VolumeNewSize, result.Capabilities = resp.VolumeNewSize, resp.capabilities()
	}
	var exitErr *exec.ExitError
	switch {
	case out.exit == nil:
		result.ExitCode = 0
	case errors.As(out.exit, &exitErr):
		result.ExitCode = exitErr.ExitCode()
	}
}

// killed reports whether a process was terminated by SIGKILL.
func killed(exit error) bool {
	var exitErr *exec.ExitError
	if !errors.As(exit, &exitErr) {
		return false
	}
	status, ok := exitErr.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// secretsIn returns the secrets in a driver's arguments.
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

// secretPrefix is the prefix of the option keys that contain secrets.
const secretPrefix = "kubernetes.io/secret/"

// Input returns the JSON object for all operations except mount.
func (v Volume) Input() (string, error) { return v.json() }

// Input returns the JSON object for mount.
func (m MountRequest) Input() (string, error) { return m.json() }
