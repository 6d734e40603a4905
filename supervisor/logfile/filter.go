package logfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// levels lists the log levels, in ascending order.
var levels = []string{"info", "warning", "error"}

// Filter selects lines by text, level and component. The zero value selects all lines.
type Filter struct {
	// Pattern is a regular expression that the selected lines match. If it is nil, all lines match.
	Pattern *regexp.Regexp
	// Level is the lowest level of the selected lines: info, warning or error. If it is empty,
	// lines of all levels are selected.
	Level string

	component *regexp.Regexp
}

// ForComponent returns a copy of the filter with an additional condition: it selects only a
// component's lines.
func (f Filter) ForComponent(name string) Filter {
	f.component = regexp.MustCompile(`\bcomponent"?[=:] ?"?` + regexp.QuoteMeta(name) + `(["\s]|$)`)
	return f
}

// NewFilter returns a filter for a case-insensitive regular expression and a level. Both can be
// empty.
func NewFilter(pattern, level string) (filter Filter, err error) {
	if pattern != "" {
		if filter.Pattern, err = regexp.Compile("(?i)" + pattern); err != nil {
			return filter, fmt.Errorf("parse regular expression %q: %w", pattern, err)
		}
	}
	if level != "" && !slices.Contains(levels, level) {
		return filter, fmt.Errorf("unknown level %q; choose one of: %s", level, strings.Join(levels, ", "))
	}
	filter.Level = level
	return filter, nil
}

func (f Filter) isZero() bool { return f.Pattern == nil && f.Level == "" && f.component == nil }

// matcher returns a function that reports whether the filter selects a line. The function must be
// called for each line of a log, in order. A line without a time continues the preceding line and
// has the same level and component.
func (f Filter) matcher() func(line string) bool {
	level, own := 0, f.component == nil
	return func(line string) bool {
		if _, ok := timeOf(line, time.Now()); ok {
			level, own = levelOf(line), f.component == nil || f.component.MatchString(line)
		}
		return own && level >= slices.Index(levels, f.Level) && (f.Pattern == nil || f.Pattern.MatchString(line))
	}
}

// levelOf returns the index of the level of a line with a time, in the formats of timeOf.
// containerd lines contain level=LEVEL. In etcd and supervisor lines, the level follows the time.
func levelOf(line string) int {
	switch {
	case strings.HasPrefix(line, "time="):
		_, level, _ := strings.Cut(line, " level=")
		level, _, _ = strings.Cut(level, " ")
		if slices.Contains([]string{"error", "fatal", "panic"}, level) {
			return 2
		}
		return max(0, slices.Index(levels, level))
	case strings.ContainsRune("EF", rune(line[0])):
		return 2
	case line[0] == 'W':
		return 1
	}
	if _, rest, ok := strings.Cut(line, "\t"); ok && line[0] >= '0' && line[0] <= '9' {
		level, _, _ := strings.Cut(rest, "\t")
		return max(0, slices.Index([]string{"info", "warn", "error"}, level))
	}
	if words := strings.Fields(line); len(words) > 2 && line[0] >= '0' && line[0] <= '9' {
		return max(0, slices.Index([]string{"INFO", "WARN", "ERROR"}, words[2]))
	}
	return 0
}
