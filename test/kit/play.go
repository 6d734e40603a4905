package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// playTimeout is the timeout for a script.
const playTimeout = 5 * time.Minute

// Play runs a script that controls the Linux distribution's browser, and returns the script's
// output. If the script fails, the error contains the output. environment contains NAME=value
// entries. Play adds CHROMIUM, the browser's path.
//
// The script runs on a separate machine. In a node's network namespace, each pod that starts
// changes the devices, which makes Chromium abort its requests.
func (c *Cluster) Play(ctx context.Context, environment []string, script string, args ...string) (_ string, err error) {
	c.t.Helper()
	desktop, err := newMachine(Options{}, nil)
	if err != nil {
		return "", fmt.Errorf("run script %q: %w", script, err)
	}
	defer func() { err = errors.Join(err, desktop.remove()) }()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return "", fmt.Errorf("run script %q: %w", script, err)
	}
	ctx, cancel := context.WithTimeout(ctx, playTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "node", append([]string{script}, args...)...)
	command.Env = append(append(command.Environ(), "CHROMIUM="+chromium), environment...)
	command.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := desktop.Do(command.Start); err != nil {
		return "", fmt.Errorf("run script %q: %w", script, err)
	}
	if err := command.Wait(); err != nil {
		return output.String(), fmt.Errorf("run script %q: %w\n%s", script, err, output.String())
	}
	return output.String(), nil
}
