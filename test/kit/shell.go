package kit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Shell is a root bash on the cluster's machine, with `slipway` and `oc` in its PATH. Variables,
// functions and the working directory persist between commands.
type Shell struct {
	input  io.WriteCloser
	output *bufio.Reader
}

// commandEnd begins the line after a command's output. On this line, the command's exit code
// follows it.
const commandEnd = "\x01end "

// Shell starts a shell in a directory. The shell's home directory is empty, so no user is logged
// in. The shell is terminated at the end of the test.
func (c *Cluster) Shell(t testing.TB, dir string) *Shell {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := c.command(ctx, "bash", "--norc", "--noprofile")
	command.Dir = dir
	command.Env = append(command.Env, "HOME="+t.TempDir(), "PATH="+c.RepositoryFile("bin")+":"+os.Getenv("PATH"))
	c.runs = true // a command can start the cluster
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := c.Do(command.Start); err != nil {
		t.Fatalf("start shell: %v", err)
	}
	t.Cleanup(func() {
		_ = input.Close() // bash exits at the end of its input
		timer := time.AfterFunc(commandTimeout, cancel)
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait() // bash returns the exit code of its last command
		timer.Stop()
		cancel()
	})
	return &Shell{input: input, output: bufio.NewReader(output)}
}

// Run runs a command and returns its combined standard output and standard error, and its exit
// code.
func (s *Shell) Run(command string) (output string, code int, err error) {
	if _, err := fmt.Fprintf(s.input, "{ %s\n} </dev/null\nprintf '\\001end %%d\\n' $?\n", command); err != nil {
		return "", 0, fmt.Errorf("write command to the shell: %w", err)
	}
	var text strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			return text.String(), 0, fmt.Errorf("the shell ended in the command: %w", err)
		}
		if before, status, ok := strings.Cut(line, commandEnd); ok {
			text.WriteString(before)
			code, err := strconv.Atoi(strings.TrimSpace(status))
			return text.String(), code, err
		}
		text.WriteString(line)
	}
}
