package logfile

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLargeLogIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "a.log")
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("first\nsecond\n"); err != nil {
		t.Fatal(err)
	}
	if err := rotate(path, 5); err != nil {
		t.Fatal(err)
	}
	// The process keeps the file open and appends to its new end.
	if _, err := file.WriteString("third\n"); err != nil {
		t.Fatal(err)
	}
	if got := LastLines(path, 10); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("log and old log are %q", got)
	}
	if got := LastLines(path+".1", 10); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("old log is %q", got)
	}
}

func TestReadLinesReturnsWholeLinesAfterTruncation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	emit := func(line string) { got = append(got, line) }
	write("one\ntwo\nhal")
	offset, err := readLines(path, 0, emit)
	if err != nil {
		t.Fatal(err)
	}
	write("one\ntwo\nhalf\n")
	if offset, err = readLines(path, offset, emit); err != nil {
		t.Fatal(err)
	}
	write("new\n")
	if _, err = readLines(path, offset, emit); err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "two", "half", "new"}; !slices.Equal(got, want) {
		t.Errorf("lines are %q, want %q", got, want)
	}
}

func TestLinesOfSeveralProcessesHaveTheirNames(t *testing.T) {
	dir := t.TempDir()
	paths := map[string]string{}
	for _, name := range []string{"node", "containerd"} {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], []byte("hello from "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := Print(t.Context(), &out, paths, Selection{Tail: 10}, false); err != nil {
		t.Fatal(err)
	}
	const want = "containerd    | hello from containerd\nnode          | hello from node\n"
	if out.String() != want {
		t.Errorf("output is %q, want %q", out.String(), want)
	}
}

// writeLog writes a log and, unless old is empty, the log's old file.
func writeLog(t *testing.T, old, current string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	for name, text := range map[string]string{path + ".1": old, path: current} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestLastLinesOfLongLogAreWhole(t *testing.T) {
	long := strings.Repeat("x", chunkBytes)
	for name, test := range map[string]struct {
		old, current string
		count        int
		want         []string
	}{
		"fewer lines than requested":   {"", "one\ntwo\n", 5, []string{"one", "two"}},
		"lines that exceed a chunk":    {"", "first\n" + long + "\n" + long + "y\nlast\n", 3, []string{long, long + "y", "last"}},
		"lines of the old file":        {"old 1\nold 2\n", "new\n", 2, []string{"old 2", "new"}},
		"a current file without lines": {"old 1\nold 2\n", "", 1, []string{"old 2"}},
		"an incomplete last line":      {"", "one\ntw", 1, []string{"tw"}},
		"no log":                       {"", "", 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LastLines(writeLog(t, test.old, test.current), test.count); !slices.Equal(got, test.want) {
				t.Errorf("%d lines %.40q, want %d", len(got), got, len(test.want))
			}
		})
	}
}

func TestSelection(t *testing.T) {
	at := func(minute int) string {
		return time.Now().Add(time.Duration(minute) * time.Minute).Format("I0102 15:04:05.000000")
	}
	path := writeLog(t, at(-60)+" a\n", at(-30)+" b\n\tcontinued\n"+at(-5)+" c\n"+at(-1)+" d\n")
	for name, test := range map[string]struct {
		selection Selection
		want      string
	}{
		"everything":                    {Selection{Tail: -1}, "a b continued c d"},
		"the last lines":                {Selection{Tail: 2}, "c d"},
		"since a time":                  {Selection{Tail: -1, Since: time.Now().Add(-10 * time.Minute)}, "c d"},
		"since the time of a long line": {Selection{Tail: -1, Since: time.Now().Add(-40 * time.Minute)}, "b continued c d"},
		"the last line since a time":    {Selection{Tail: 1, Since: time.Now().Add(-10 * time.Minute)}, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Print(t.Context(), &out, map[string]string{"node": path}, test.selection, false); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				fields := strings.Fields(line)
				got = append(got, fields[len(fields)-1])
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("lines are %q, want %q", got, test.want)
			}
		})
	}
}

func TestSeveralLogsAreMergedByTime(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 11, 23, 1, 44, second, 0, time.Local) }
	containerd := func(second int) string { return "time=\"" + at(second).UTC().Format(time.RFC3339Nano) + "\" msg=" }
	supervisor := func(second int) string { return at(second).Format("2006/01/02 15:04:05 ") }
	paths := map[string]string{
		"containerd": writeLog(t, "", containerd(35)+"2\n"+containerd(37)+"4\n"),
		"slipway":    writeLog(t, "", supervisor(34)+"1\n"+supervisor(36)+"3\n"),
	}
	var out bytes.Buffer
	if err := Print(t.Context(), &out, paths, Selection{Tail: -1}, false); err != nil {
		t.Fatal(err)
	}
	var order strings.Builder
	for line := range strings.Lines(out.String()) {
		order.WriteString(line[len(line)-2 : len(line)-1])
	}
	if order.String() != "1234" {
		t.Errorf("the order is %s:\n%s", order.String(), &out)
	}
}

func TestTimeOfLine(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 30, 0, 0, time.Local)
	for line, want := range map[string]time.Time{
		"I1231 23:59:58.000001 1 a.go:1] x":        time.Date(2026, 12, 31, 23, 59, 58, 1000, time.Local),
		"E0101 00:10:00.000000 1 a.go:1] x":        time.Date(2027, 1, 1, 0, 10, 0, 0, time.Local),
		`time="2026-12-31T10:00:00.5Z" level=info`: time.Date(2026, 12, 31, 10, 0, 0, 5e8, time.UTC),
		"2026/12/31 01:44:34 INFO process started": time.Date(2026, 12, 31, 1, 44, 34, 0, time.Local),
		"\tgoroutine 1 [running]:":                 {},
		"":                                         {},
		"Information without a leading time.":      {},
	} {
		if got, ok := timeOf(line, now); !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("the time of %q is %s (%t), want %s", line, got, ok, want)
		}
	}
}

func TestFilterSelectsLinesByTextAndLevel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := strings.Join([]string{
		`I1123 12:00:00.000000   1 a.go:1] "mounted Volume"`,
		`W1123 12:00:01.000000   1 a.go:1] "slow volume"`,
		`time="2026-11-23T12:00:02Z" level=error msg="volume is gone"`,
		`time="2026-11-23T12:00:03Z" level=info msg="pod"`,
		`2026/11/23 12:00:04 ERROR process ended`,
		`goroutine 1 of the volume`,
		`2026/11/23 12:00:05 INFO process started with a volume`,
	}, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	for _, tt := range []struct {
		name, pattern, level string
		tail                 int
		want                 []int
	}{
		{"text in any case", "volume", "", -1, []int{0, 1, 2, 5, 6}},
		{"level", "", "warning", -1, []int{1, 2, 4, 5}},
		{"highest level", "", "error", -1, []int{2, 4, 5}},
		{"text and level", "VOLUME$|gone", "warning", -1, []int{2, 5}},
		{"last selected lines", "volume", "", 2, []int{5, 6}},
		{"lowest level", "", "info", 1, []int{6}},
	} {
		filter, err := NewFilter(tt.pattern, tt.level)
		if err != nil {
			t.Fatal(err)
		}
		var want, got strings.Builder
		for _, i := range tt.want {
			want.WriteString(lines[i] + "\n")
		}
		if err := Print(t.Context(), &got, map[string]string{"node": path}, Selection{Tail: tt.tail, Filter: filter}, false); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%s:\n%swant\n%s", tt.name, got.String(), want.String())
		}
	}
	for _, wrong := range [][2]string{{"(", ""}, {"", "loud"}} {
		if _, err := NewFilter(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestFilterSelectsLinesOfComponent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	lines := []string{
		`I1123 12:00:00.000000   1 a.go:1] "synced" component="dns"`,
		`E1123 12:00:01.000000   1 a.go:1] "panic" component="proxy"`,
		`goroutine 1 of the proxy`,
		`2026/11/23 12:00:02 INFO component starts component=proxy`,
		`I1123 12:00:03.000000   1 a.go:1] "synced" component="proxy-of-others"`,
		`2026-11-23T12:00:04.000000001Z	warn	slow	{"component": "proxy", "took": "1s"}`,
		`2026-11-23T12:00:05.000000001Z	warn	slow	{"component": "etcd", "took": "1s"}`,
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	selection := Selection{Tail: -1, Filter: Filter{}.ForComponent("proxy")}
	if err := Print(t.Context(), &got, map[string]string{"node": path}, selection, false); err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(append(lines[1:4], lines[5]), "\n") + "\n"; got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestFilterSelectsNewLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	filter, err := NewFilter("wanted", "")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- Print(ctx, writer, map[string]string{"node": path}, Selection{Tail: -1, Filter: filter}, true)
	}()
	if err := os.WriteFile(path, []byte("other\nwanted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(reader).ReadString('\n')
	if line != "wanted\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
