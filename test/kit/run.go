package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// commandTimeout is the timeout for a program. A boot on a slow machine takes a tenth of this time.
const commandTimeout = 5 * time.Minute

// Result contains a program's output and exit code.
type Result struct {
	Stdout, Stderr string
	// Code is the exit code, or -1 if the program was terminated by a signal.
	Code int
}

// Slipway runs `bin/slipway` with args in the cluster's network. It sets the SLIPWAY_DATA_DIR
// environment variable to the cluster's data directory.
func (c *Cluster) Slipway(args ...string) Result {
	c.t.Helper()
	result, err := c.slipway(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// SlipwayWith works like Slipway but sets additional environment variables, in the form NAME=value.
func (c *Cluster) SlipwayWith(environment []string, args ...string) Result {
	c.t.Helper()
	c.runs = true
	result, err := c.runWith(environment, "", c.program("slipway"), args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// SlipwayWithInput works like Slipway but passes input on standard input.
func (c *Cluster) SlipwayWithInput(input string, args ...string) Result {
	c.t.Helper()
	result, err := c.run(input, c.program("slipway"), args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// MustSlipway works like Slipway but fails the test unless the exit code is 0. It returns the
// command's standard output.
func (c *Cluster) MustSlipway(args ...string) string {
	c.t.Helper()
	result := c.Slipway(args...)
	if result.Code != 0 {
		c.t.Fatalf("slipway %s: exit code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result.Stdout
}

// Up runs `slipway up` and connects to the cluster. It returns the command's output.
func (c *Cluster) Up() string {
	c.t.Helper()
	output, err := c.up()
	if err != nil {
		c.t.Fatal(err)
	}
	return output
}

// UpFails runs `slipway up` and fails the test unless the exit code is 1. It returns the command's
// output.
func (c *Cluster) UpFails() string {
	c.t.Helper()
	c.runs = true
	result := c.Slipway("up")
	if result.Code != 1 {
		c.t.Fatalf("slipway up: exit code %d, want 1\n%s", result.Code, result.Stderr)
	}
	return result.Stdout + result.Stderr
}

// StartSlipway starts `bin/slipway` with additional environment variables and keeps it running
// until the end of the test. If the test fails, StartSlipway's cleanup prints the program's output.
func (c *Cluster) StartSlipway(environment []string, args ...string) *exec.Cmd {
	c.t.Helper()
	return c.StartSlipwayAs("slipway", environment, args...)
}

// StartSlipwayAs works like StartSlipway but runs the program under a different name, such as the
// name of a symbolic link.
func (c *Cluster) StartSlipwayAs(name string, environment []string, args ...string) *exec.Cmd {
	c.t.Helper()
	c.runs = true
	ctx, cancel := context.WithCancel(context.Background())
	command := c.command(ctx, c.program("slipway"), args...)
	command.Args[0] = name
	command.Env = append(command.Env, environment...)
	// Write the output to a file, because a child process could keep a pipe open.
	log, err := os.Create(filepath.Join(c.t.TempDir(), "log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := c.Do(command.Start); err != nil {
		cancel()
		c.t.Fatalf("start %s %s: %v", name, strings.Join(args, " "), err)
	}
	c.t.Cleanup(func() {
		cancel()
		if command.ProcessState == nil {
			_ = command.Wait() // Wait returns an error if cancel killed the program
		}
		if data, err := os.ReadFile(log.Name()); err == nil && c.t.Failed() {
			c.t.Logf("%s %s:\n%s", name, strings.Join(args, " "), data)
		}
	})
	return command
}

// Connect creates the clients for a cluster that Up did not start.
func (c *Cluster) Connect() {
	c.t.Helper()
	if err := c.connect(); err != nil {
		c.t.Fatal(err)
	}
}

// Down runs `slipway down` and fails the test if anything except the data remains.
func (c *Cluster) Down() {
	c.t.Helper()
	c.MustSlipway("down")
	for _, problem := range c.leftovers() {
		c.t.Error(problem)
	}
}

// Status contains the fields of `slipway status -o json` that tests read.
type Status struct {
	Version, DataDir string
	Ready            bool
	Processes        []struct {
		Name, State, LastError string
		PID, Restarts          int
		Components             []struct {
			Name, State, Error string
			After              []string
		} `json:"parts"`
	}
	Nodes []struct {
		Name, Address string
		Ready         bool
	}
}

// PID returns a process's PID, or 0 if the process is not running.
func (s Status) PID(name string) int {
	for _, process := range s.Processes {
		if process.Name == name {
			return process.PID
		}
	}
	return 0
}

// Status returns the cluster's status. It fails the test if the status cannot be read.
func (c *Cluster) Status() Status {
	c.t.Helper()
	result := c.Slipway("status", "-o", "json")
	var status Status
	if err := json.Unmarshal([]byte(result.Stdout), &status); err != nil {
		c.t.Fatalf("read status: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
	return status
}

// NodeName returns the name of this machine's node, or "" if the machine has no node.
func (c *Cluster) NodeName() string {
	c.t.Helper()
	for _, node := range c.Status().Nodes {
		if node.Address == c.Address.String() {
			return node.Name
		}
	}
	return ""
}

func (c *Cluster) up() (string, error) {
	c.runs = true
	result, err := c.slipway("up")
	if err != nil {
		return "", err
	}
	output := result.Stdout + result.Stderr
	if result.Code != 0 {
		return output, fmt.Errorf("slipway up: exit code %d\n%s", result.Code, output)
	}
	return output, c.connect()
}

// connect creates the clients. The API server listens only in the namespace, so the clients dial
// from within the namespace.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Path("admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.Dial = c.Dial
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	c.Config, c.Client = config, client
	return nil
}

func (c *Cluster) slipway(args ...string) (Result, error) {
	return c.run("", c.program("slipway"), args...)
}

// run runs a program in the machine's network and waits for it to exit.
func (c *Cluster) run(input, program string, args ...string) (Result, error) {
	return c.runWith(nil, input, program, args...)
}

func (c *Cluster) runWith(environment []string, input, program string, args ...string) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	command := c.command(ctx, program, args...)
	command.Env = append(command.Env, environment...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := c.Do(command.Start); err != nil {
		return Result{}, fmt.Errorf("start %s: %w", program, err)
	}
	err := command.Wait()
	result := Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: command.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("run %s %s: %w\n%s%s", program, strings.Join(args, " "), err, result.Stdout, result.Stderr)
	}
	return result, nil
}

// command returns a command with this cluster's environment. If a background process keeps the
// command's output open, the command fails after a few seconds.
func (c *Cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.WaitDelay = 5 * time.Second
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "SLIPWAY_") || strings.HasPrefix(variable, "KUBECONFIG=")
	})
	command.Env = append(command.Env, "SLIPWAY_DATA_DIR="+c.DataDir, "HOME="+c.home)
	return command
}

// program returns the path of a program under test.
func (c *Cluster) program(name string) string {
	if name == "slipway" && c.Program != "" {
		return c.Program
	}
	return c.RepositoryFile("bin", name)
}
