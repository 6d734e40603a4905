package conformance

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// check runs groups of checks on a driver from testdata, in which old is replaced with new.
func check(t *testing.T, base, old, new string, groups ...string) Report {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", base))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(content), old) != 1 {
		t.Fatalf("the driver does not contain %q exactly once", old)
	}
	file := filepath.Join(t.TempDir(), "driver")
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), old, new, 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	report, err := Run(context.Background(), Config{
		Driver: "example.com/" + base, File: file, Size: 10 << 20, Timeout: 10 * time.Second, Only: groups,
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// notOK returns the results whose verdict is Wrong or Risk.
func notOK(report Report) (results []Result) {
	for _, result := range report.Results {
		if result.Verdict == Wrong || result.Verdict == Risk {
			results = append(results, result)
		}
	}
	return results
}

func TestCorrectDriverIsOK(t *testing.T) {
	for _, base := range []string{"mounting", "attachable"} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			report := check(t, base, "set -u\n", "set -u\n")
			if results := notOK(report); len(results) > 0 || report.Count(OK) < 30 {
				t.Errorf("%s: %+v", report.Summary(), results)
			}
		})
	}
}

// defect is a faulty driver, with the check that must report the fault.
type defect struct {
	name, base, old, new string
	groups               []string
	check                string
	verdict              Verdict
}

func defects() []defect {
	const umount = "		umount \"$1\" || failure \"cannot unmount\"\n"
	return []defect{
		{"init prints more than its response", "mounting", "init) success", "init) echo ready; success", nil, "init", Wrong},
		{"init has a capability of the wrong type", "mounting", `"attach":false`, `"attach":"false"`, nil, "init", Wrong},
		{"init fails when repeated", "mounting", "init) success", `init) mkdir "$storage" || failure "exists"; success`, nil, "init-repeated", Wrong},
		{"init returns different capabilities", "mounting", `"attach":false`, `"attach":false,"fsGroup":'"$(mkdir "$storage" 2>/dev/null && echo true || echo false)"'`,
			nil, "init-repeated", Risk},
		{"init has an unknown capability", "mounting", `"attach":false`, `"attach":false,"resize":true`, nil, "capabilities", Risk},
		{"init does not return whether it is attachable", "attachable", `"attach":true`, ``, nil, "capabilities", Risk},
		{"init is slow", "mounting", "init) success", "init) sleep 2.1; success", []string{"lacks"}, "time", Risk},

		{"an unknown operation is a failure", "mounting", `{"status":"Not supported"}`, `{"status":"Failure"}`, []string{"lacks"}, "lacks-unknown", Risk},
		{"an unknown operation is a success", "mounting", `{"status":"Not supported"}`, `{"status":"Success"}`, []string{"lacks"}, "lacks-unknown", Risk},
		{"an unknown operation has another status", "mounting", `Not supported`, `Not Supported`, []string{"lacks"}, "output-fields", Risk},
		{"an unknown operation exits with 0", "mounting", "exit 1\n	;;\nesac", "exit 0\n	;;\nesac", []string{"lacks"}, "output-exit", Risk},
		{"an unknown operation exits with 2", "mounting", "exit 1\n	;;\nesac", "exit 2\n	;;\nesac", []string{"lacks"}, "output-exit-one", Risk},

		{"mount does nothing", "mounting", "dir=$1 json=$2\n", "dir=$1 json=$2\n	success\n", []string{"sequence"}, "mount", Wrong},
		{"mount mounts again", "mounting", `if [ "$(mounts "$dir")" -eq 0 ]`, "if true", []string{"sequence"}, "mount-repeated", Risk},
		{"repeated mount fails", "mounting", "	mkdir -p \"$volume\"", "	[ \"$(mounts \"$dir\")\" -eq 0 ] || failure \"is mounted\"\n	mkdir -p \"$volume\"",
			[]string{"sequence"}, "mount-repeated", Risk},
		{"unmount does nothing", "mounting", umount, "		:\n", []string{"sequence"}, "unmount", Wrong},
		{"unmount leaves files", "mounting", umount, umount + "		touch \"$1/left\"\n", []string{"sequence"}, "unmount", Wrong},
		{"repeated unmount fails", "mounting", umount + "	fi", umount + "	else\n		failure \"is not mounted\"\n	fi", []string{"sequence"}, "unmount-repeated", Risk},
		{"unmount is not supported", "mounting", "unmount) do_unmount \"$2\" ;;\n", "", []string{"sequence"}, "pairs", Risk},
		{"data is deleted", "mounting", umount, umount + "		rm -rf \"$storage\"\n", []string{"sequence"}, "data", Risk},
		{"a read-only volume is writable", "mounting", "remount,bind,$access", "remount,bind,rw", []string{"read-only"}, "read-only", Risk},
		{"unmount unmounts the other pod's volume", "mounting", umount,
			umount + "		for other in \"${1%/pods/*}\"/pods/*/volumes/*/*; do umount \"$other\" 2>/dev/null; done\n", []string{"pods"}, "pods", Risk},
		{"unmounting a volume that is not mounted fails", "mounting", umount + "	fi", umount + "	else\n		failure \"is not mounted\"\n	fi", []string{"undone"}, "unmount-undone", Risk},
		{"a failed mount is reported as a success", "mounting", `|| failure "cannot mount"
	fi
	mount -o "remount,bind,$access" "$dir" || failure "cannot remount"`, "\n	fi\n	mount -o \"remount,bind,$access\" \"$dir\" 2>/dev/null",
			[]string{"failure"}, "failure", Risk},
		{"a failure has no message", "mounting", `{"status":"Failure","message":"%s"}\n' "$1"`, `{"status":"Failure"}\n'`, []string{"failure"}, "failure", Risk},

		{"options are executed", "mounting", "dir=$1 json=$2\n", "dir=$1 json=$2\n	eval \"true \\\"$json\\\"\" >/dev/null 2>&1 || true\n", []string{"options"}, "options-executed", Risk},
		{"options are split at spaces", "mounting", `mount) do_mount "$2" "$3"`, "mount) do_mount $2 $3", []string{"options"}, "options", Risk},
		{"options are parsed without regard to quotes", "mounting", `access=$(option kubernetes.io/readwrite)`,
			`access=$(printf '%s\n' "$json" | tr -d '\\' | sed 's#.*"kubernetes.io/readwrite":"\([^"]*\)".*#\1#;s/rw/rw/' | head -n 1)
	case $json in *'readwrite\":\"ro'*) access=ro ;; esac`, []string{"options"}, "options", Risk},
		{"a secret is printed", "mounting", "dir=$1 json=$2\n", "dir=$1 json=$2\n	echo \"$json\" >&2\n", []string{"secrets"}, "secrets", Risk},
		{"standard error has noise", "mounting", "dir=$1 json=$2\n", "dir=$1 json=$2\n	echo mounting >&2\n", []string{"sequence"}, "output-noise", Risk},
		{"the response is on standard error", "mounting", "	mkdir -p \"$volume\"", "	exec >&2\n	mkdir -p \"$volume\"", []string{"sequence"}, "output-json", Risk},
		{"a success exits with 1", "mounting", "' \"${1:-}\"\n	exit 0", "' \"${1:-}\"\n	[ -z \"${dir:-}\" ]; exit $?", []string{"sequence"}, "output-exit", Risk},

		{"volumes block each other", "mounting", "	mkdir -p \"$volume\"", "	mkdir \"$storage.lock\" || failure \"locked\"\n	sleep 0.2\n	rmdir \"$storage.lock\"\n	mkdir -p \"$volume\"",
			[]string{"parallel"}, "parallel", Risk},
		{"all volumes are the same volume", "mounting", "volume=$storage/$(option kubernetes.io/pvOrVolumeName)", "volume=$storage", []string{"parallel"}, "distinct", Risk},
		{"a killed mount leaves a lock", "mounting", "	mkdir -p \"$volume\"", "	mkdir -p \"$storage\"; mkdir \"$volume.lock\" || failure \"locked\"\n	sleep 0.1\n	rmdir \"$volume.lock\"\n	mkdir -p \"$volume\"",
			[]string{"killed"}, "killed-mount", Risk},
		{"a killed mount must be unmounted before the next mount", "mounting", "case $1 in\ninit)", `lock=$storage.lock
case $1 in
mount)
	mkdir "$lock" || failure "locked"
	sleep 0.1
	rmdir "$lock"
	;;
unmount) rm -rf "$lock" ;;
esac
case $1 in
init)`, []string{"killed"}, "killed-mount", Risk},
		{"the expanded volume is too small", "mounting", `\"volumeNewSize\":$3`, `\"volumeNewSize\":$4`, []string{"expand"}, "expandvolume", Risk},
		{"the file system is not expanded", "mounting", "init) success", "expandfs) success ;;\ninit) success", []string{"expand"}, "expandfs", Risk},

		{"a mount remains", "mounting", "	mkdir -p \"$volume\"", "	mkdir -p \"$volume\" \"$volume.copy\"\n	mount --bind \"$volume\" \"$volume.copy\"", []string{"sequence"}, "leftover-mounts", Risk},
		{"a process remains", "mounting", "	mkdir -p \"$volume\"", "	setsid sleep 300 >/dev/null 2>&1 </dev/null &\n	mkdir -p \"$volume\"", []string{"sequence"}, "leftover-processes", Risk},
		{"a file remains", "mounting", "	mkdir -p \"$volume\"", "	touch \"$dir.lock\"\n	mkdir -p \"$volume\"", []string{"sequence"}, "leftover-files", Risk},
		{"an operation does not end", "mounting", "	mkdir -p \"$volume\"", "	sleep 300\n	mkdir -p \"$volume\"", []string{"failure"}, "output-deadline", Risk},

		{"the name changes with each call", "attachable", `volumeName\":\"volume/$(name "$1")`, `volumeName\":\"$$`, []string{"sequence"}, "getvolumename-repeated", Risk},
		{"the volume is attached everywhere", "attachable", `/dev/null)" = "$2" ]`, `/dev/null)" != "" ]`, []string{"sequence"}, "isattached-elsewhere", Risk},
		{"the volume stays attached", "attachable", `		rm -f "$volume/node"`, `		:`, []string{"sequence"}, "isattached-detached", Risk},
		{"isattached returns a string instead of a boolean", "attachable", `"attached":true`, `"attached":"true"`, []string{"sequence"}, "output-fields", Risk},
		{"isattached is not supported", "attachable", "isattached) do_isattached \"$2\" \"$3\" ;;\n", "", []string{"sequence"}, "isattached", Risk},
		{"the device does not exist", "attachable", `\"device\":\"$(device "$image")\"`, `\"device\":\"/dev/no-such-device\"`, []string{"sequence"}, "waitforattach", Wrong},
		{"repeated detach fails", "attachable", "	volume=$storage/$1\n", "	volume=$storage/$1\n	[ -e \"$volume/node\" ] || failure \"not attached\"\n", []string{"sequence"}, "detach-repeated", Risk},
		{"detach is not supported", "attachable", "detach) do_detach \"$2\" \"$3\" ;;\n", "", []string{"sequence"}, "pairs", Risk},
		{"a device remains", "attachable", "		[ -z \"$loop\" ] || losetup --detach \"$loop\" || failure \"cannot free device\"\n", "", []string{"sequence"}, "leftover-devices", Risk},
	}
}

func TestEveryDefectIsReported(t *testing.T) {
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			config := append([]string{}, d.groups...)
			if len(config) == 0 {
				config = []string{"init"}
			}
			report := check(t, d.base, d.old, d.new, config...)
			at := slices.IndexFunc(report.Results, func(result Result) bool { return result.Check == d.check })
			if at < 0 || report.Results[at].Verdict != d.verdict {
				t.Errorf("%s is not %s: %+v", d.check, d.verdict, report.Results)
			}
		})
	}
}

func TestDriverWithRisksWorks(t *testing.T) {
	for name, test := range map[string]struct{ base, old, new string }{
		"unknown operations exit with 0": {"mounting", "exit 1\n	;;\nesac", "exit 0\n	;;\nesac"},
		"mount cannot be repeated": {"mounting", "	mkdir -p \"$volume\"",
			"	[ \"$(mounts \"$dir\")\" -eq 0 ] || failure \"is mounted\"\n	mkdir -p \"$volume\""},
		"mount mounts again": {"mounting", `if [ "$(mounts "$dir")" -eq 0 ]`, "if true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if report := check(t, test.base, test.old, test.new, "sequence", "lacks"); report.Verdict() != Risk {
				t.Errorf("the verdict is %s: %s, %+v", report.Verdict(), report.Summary(), notOK(report))
			}
		})
	}
}

func TestReadOnlyStorageWorks(t *testing.T) {
	report := check(t, "mounting", "remount,bind,$access", "remount,bind,ro", "sequence", "read-only", "pods", "options", "parallel")
	if results := notOK(report); len(results) > 0 {
		t.Errorf("%s: %+v", report.Summary(), results)
	}
}

func TestShortSecretIsNotALeak(t *testing.T) {
	driver, err := os.ReadFile(filepath.Join("testdata", "mounting"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "driver")
	if err := os.WriteFile(file, driver, 0o755); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Config{
		Driver: "example.com/short", File: file, Size: 10 << 20, Only: []string{"sequence", "secrets"},
		Secrets: map[string][]byte{"user": []byte("S"), "port": []byte(":")},
	})
	if err != nil || report.Verdict() != OK {
		t.Errorf("%v, %s: %+v", err, report.Summary(), notOK(report))
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	sleep := fmt.Sprintf("300.%d", time.Now().UnixNano()) // identifies the process
	report := check(t, "mounting", "	mkdir -p \"$volume\"", `	setsid sleep `+sleep+` >/dev/null 2>&1 </dev/null &
	mkdir -p "$volume" "$volume.copy"
	mount --bind "$volume" "$volume.copy"`, "sequence")
	report.Results = append(report.Results, check(t, "attachable",
		"		[ -z \"$loop\" ] || losetup --detach \"$loop\" || failure \"cannot free device\"\n", "", "sequence").Results...)
	if report.Count(Risk) < 3 {
		t.Fatalf("the drivers leave nothing behind: %+v", report.Results)
	}
	if remaining, err := filepath.Glob(filepath.Join(dir, "flexvolume-check-*")); err != nil || len(remaining) > 0 {
		t.Errorf("directories %q, %v", remaining, err)
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil || len(mounts) > 0 {
		t.Errorf("mounts %v, %v", mounts, err)
	}
	for device, file := range loopDevices() {
		if strings.HasPrefix(file, dir) {
			t.Errorf("device %s of %s", device, file)
		}
	}
	eventually.True(t, "the process has ended", func() bool { return !isRunning(t, sleep) })
}

// isRunning reports whether the command line of any process contains the argument.
func isRunning(t *testing.T, argument string) bool {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		command, _ := os.ReadFile(path)
		return bytes.Contains(command, []byte("\x00"+argument+"\x00"))
	})
}

func TestReportFormats(t *testing.T) {
	report := Report{
		Driver: "example.com/x", Version: "0123456789abcdef",
		Results: []Result{
			{"init", OK, "it is attachable", ""},
			{"mount", Wrong, "it prints \"a\nb\"", "print <one> line"},
			{"data", Risk, "it forgets", "remember"},
			{"secrets", NotTried, "no mount", ""},
		},
		Timings: []Timing{{"init", 2, time.Millisecond, 2 * time.Millisecond}},
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"version 0123456789ab,", "mount      wrong      it prints \"a\\nb\"\n", "-> print <one> line\n", "init       2          1.0 ms, 2.0 ms",
		"example.com/x does not work (mount): 1 ok, 1 wrong, 1 risks, 1 not tried",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	var file bytes.Buffer
	if err := report.JUnit(&file); err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal(file.Bytes(), &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != 4 || suite.Failures != 1 || suite.Skipped != 1 || len(suite.Cases) != 4 || suite.Cases[1].Failure == nil ||
		suite.Cases[1].Failure.Text != "print <one> line" || suite.Cases[3].Skipped == nil {
		t.Errorf("%+v", suite)
	}
}

func TestInvalidConfigIsRejected(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]Config{
		"find FlexVolume driver":  {Driver: "example.com/absent", PluginDir: t.TempDir()},
		"/no/such/shell":          {Driver: "example.com/x", File: script},
		"unknown group of checks": {Driver: "example.com/x", File: script, Only: []string{"everything"}},
		"read driver name":        {Driver: "a/b/c", File: script},
	} {
		if _, err := Run(context.Background(), config); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
