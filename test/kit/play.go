package kit

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// playTimeout ends a script that hangs.
const playTimeout = 5 * time.Minute

// Play runs a script of Playwright in the cluster's network, which drives the distribution's
// Chromium, and returns its output. The error contains the output of a script that fails. The
// environment is NAME=value; CHROMIUM is the path of the browser.
func (c *Cluster) Play(ctx context.Context, environment []string, script string, args ...string) (string, error) {
	c.t.Helper()
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
	if err := c.Do(command.Start); err != nil {
		return "", fmt.Errorf("run script %q: %w", script, err)
	}
	if err := command.Wait(); err != nil {
		return output.String(), fmt.Errorf("run script %q: %w\n%s", script, err, output.String())
	}
	return output.String(), nil
}
