package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is a fuzz test.
type target struct{ directory, name string }

func (t target) String() string { return t.directory + "." + t.name }

// result is the result of fuzzing a target.
type result struct {
	target
	duration   time.Duration
	executions int64
	// inputs is the number of inputs, including seeds, that reach distinct code.
	inputs int
	// finding is the name of the failing input or the error. It is "" if the target passed.
	finding string
}

func (r result) String() string {
	finding := r.finding
	if finding == "" {
		finding = "nothing"
	}
	return fmt.Sprintf("%s: %s, %d executions, %d inputs, found: %s", r.target, r.duration, r.executions, r.inputs, finding)
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// find returns the targets below a directory that match the given pattern, sorted by path.
func find(root string, only *regexp.Regexp) (targets []target, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range declaration.FindAllStringSubmatch(string(content), -1) {
			if t := (target{filepath.ToSlash(filepath.Dir(path)), match[1]}); only.MatchString(t.String()) {
				targets = append(targets, t)
			}
		}
		return nil
	})
	return targets, err
}

// fuzz runs a target for the duration in share, which starts at the first execution, after
// compilation.
func (t target) fuzz(ctx context.Context, share time.Duration) result {
	r := result{target: t, duration: share}
	command := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", share.String(), "./"+t.directory)
	// On SIGINT, go test also terminates its fuzz workers.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		r.finding = err.Error()
		return r
	}
	lines := bufio.NewScanner(output)
	var last []string
	for lines.Scan() {
		r.read(lines.Text())
		last = append(last[max(0, len(last)-40):], lines.Text())
	}
	if err := command.Wait(); err != nil {
		fmt.Println(strings.Join(last, "\n"))
		if r.finding == "" {
			r.finding = err.Error()
		}
	}
	return r
}

var (
	progress = regexp.MustCompile(`execs: (\d+).*\(total: (\d+)\)`)
	failing  = regexp.MustCompile(`Failing input written to (\S+)`)
)

// read parses a line of output. The line is either progress, such as "fuzz: elapsed: 3s, execs:
// 1234 (411/sec), new interesting: 5 (total: 20)", or the name of a failing input.
func (r *result) read(line string) {
	if match := progress.FindStringSubmatch(line); match != nil {
		r.executions, _ = strconv.ParseInt(match[1], 10, 64) // the pattern matches only digits
		r.inputs, _ = strconv.Atoi(match[2])
	}
	if match := failing.FindStringSubmatch(line); match != nil {
		r.finding = match[1]
	}
}
