package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsOfOpenShiftStartAreWrittenOnce(t *testing.T) {
	for flag, want := range map[string]string{
		"master.example.com":                  "https://master.example.com:8443",
		"master.example.com:443":              "https://master.example.com:443",
		"https://master.example.com/console/": "https://master.example.com/console/",
	} {
		dir := t.TempDir()
		settings := StartSettings{PublicMaster: flag, CORSAllowedOrigins: []string{`//app\.example\.com$`}}
		for range 2 { // the second start reads the first start's files
			if err := settings.Write(dir); err != nil {
				t.Fatal(err)
			}
		}
		c, err := LoadAnyway(dir, "")
		if c == nil {
			t.Fatal(err)
		}
		if c.Master.MasterPublicURL != want || !cmp.Equal([]string(c.Master.CORSAllowedOrigins), settings.CORSAllowedOrigins) {
			t.Errorf("%s: masterPublicURL is %q, corsAllowedOrigins %q", flag, c.Master.MasterPublicURL, c.Master.CORSAllowedOrigins)
		}
		if err := (StartSettings{}).Write(dir); err != nil {
			t.Errorf("without flags: %v", err)
		}
		for name, changed := range map[string]StartSettings{
			"masterPublicURL":    {PublicMaster: "other.example.com"},
			"corsAllowedOrigins": {CORSAllowedOrigins: []string{"//other"}},
		} {
			if err := changed.Write(dir); err == nil || !strings.Contains(err.Error(), name+" is ") || !strings.Contains(err.Error(), "change the file, or omit the flag") {
				t.Errorf("another %s: %v", name, err)
			}
		}
	}
	if err := (StartSettings{PublicMaster: "https://"}).Write(t.TempDir()); err == nil || !strings.Contains(err.Error(), "--public-master") {
		t.Errorf("an invalid address: %v", err)
	}
}
