package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// decodeMaster decodes a MasterConfig from text. The text must not contain apiVersion and kind.
func decodeMaster(t *testing.T, text string) (*MasterConfig, Problems) {
	t.Helper()
	roots, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &MasterConfig{}
	_, problems := decode("f.yaml", roots[0], c, retiredMasterKeys())
	return c, problems
}

func TestBooleansAcceptSpellingsOfYAML11(t *testing.T) {
	for spelling, want := range map[string]bool{
		"true": true, "True": true, "yes": true, "YES": true, "on": true, "On": true,
		"false": false, "no": false, "No": false, "off": false, "OFF": false,
	} {
		c, problems := decodeMaster(t, "auditConfig: {enabled: "+spelling+"}")
		if len(problems) > 0 || c.AuditConfig.Enabled != want {
			t.Errorf("%s: got %v, %v, want %v", spelling, c.AuditConfig.Enabled, problems, want)
		}
	}
	for _, spelling := range []string{`"true"`, "y", "tRuE", "1", "''"} {
		if _, problems := decodeMaster(t, "auditConfig: {enabled: "+spelling+"}"); len(problems) != 1 {
			t.Errorf("%s: got problems %v, want one", spelling, problems)
		}
	}
}

func TestStringsNeedNoQuotes(t *testing.T) {
	c, problems := decodeMaster(t,
		"kubernetesMasterConfig: {apiServerArguments: {v: [4], a: [true], b: [0755], c: [1.50]}}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, want := range map[string]string{"v": "4", "a": "true", "b": "0755", "c": "1.50"} {
		if got := c.KubernetesMasterConfig.APIServerArguments[name][0]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestJSONIsAccepted(t *testing.T) {
	c, problems := decodeMaster(t,
		`{"servingInfo": {"bindAddress": "0.0.0.0:443", "maxRequestsInFlight": 7}, "oauthConfig": null}`)
	serving := c.ServingInfo
	if len(problems) > 0 || serving.BindAddress != "0.0.0.0:443" || serving.MaxRequestsInFlight != 7 ||
		c.OAuthConfig != nil {
		t.Errorf("got %+v, %v", c.ServingInfo, problems)
	}
}

func TestFreeFormValueIsDecodedToJSON(t *testing.T) {
	c, problems := decodeMaster(t, `admissionConfig: {pluginConfig: {p: {configuration: {
	  a: 1, b: 18446744073709551615, c: 1.5, d: yes, e: "yes", f: [x, null], g: {h: 2020-01-01}, i: ~}}}}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := `{"a":1,"b":18446744073709551615,"c":1.5,"d":true,"e":"yes","f":["x",null],"g":{"h":"2020-01-01"},"i":null}`
	if got := string(c.AdmissionConfig.PluginConfig["p"].Configuration.Raw); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAliasesAreExpanded(t *testing.T) {
	c, problems := decodeMaster(t, "corsAllowedOrigins: &origins [a, b]\napiLevels: *origins")
	if len(problems) > 0 || strings.Join(c.APILevels, "") != "ab" {
		t.Errorf("got %v, %v", c.APILevels, problems)
	}
}

func TestAliasesCannotExhaustMemory(t *testing.T) {
	bomb := "admissionConfig: {pluginConfig: {p: {configuration: {a0: &a0 [x, x, x, x, x, x, x, x, x, x]"
	for i := range 9 {
		a := string(rune('0' + i))
		b := string(rune('1' + i))
		bomb += ", a" + b + ": &a" + b + " [" + strings.Repeat("*a"+a+", ", 9) + "*a" + a + "]"
	}
	_, problems := decodeMaster(t, bomb+"}}}}")
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "more than 50000 values") {
		t.Errorf("got %v, want one problem with the number of values", problems)
	}
	_, problems = decodeMaster(t, "admissionConfig: {pluginConfig: {p: {configuration: &a {a: *a}}}}")
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "nested deeper than 100 levels") {
		t.Errorf("got %v, want one problem with the depth", problems)
	}
}

func TestRetiredKeysAreAccepted(t *testing.T) {
	for key := range retiredMasterKeys() {
		text := key + ": {a: [b]}"
		if block, name, ok := strings.Cut(key, "."); ok {
			text = block + ": {" + name + ": {a: [b]}}"
		}
		roots, err := parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		d, problems := decode("f.yaml", roots[0], &MasterConfig{}, retiredMasterKeys())
		if len(problems) > 0 || len(d.set) != 1 || d.set[0] != key {
			t.Errorf("%s: set %v, problems %v", key, d.set, problems)
		}
	}
}

// FuzzDecode checks that no input causes the decoder to panic. It also checks that a document that
// decodes without problems can be encoded to YAML that decodes to the same value.
func FuzzDecode(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("seeds: %v, %v", seeds, err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		"", "---", "a: &a [*a]", "? {a: b}\n: c", "!!binary x: y",
		"kind: !!str\napiVersion: !!null v1", "\xff", "auditConfig: {enabled: !!str }",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		roots, _ := parse(data)
		for _, root := range roots {
			kindOf("f.yaml", root, []string{masterKind})
			master, node := &MasterConfig{}, &NodeConfig{}
			masterDocument, problems := decode("f.yaml", root, master, retiredMasterKeys())
			nodeDocument, nodeProblems := decode("f.yaml", root, node, nil)
			c := &Config{DataDir: "/data", Master: master, Node: node, master: masterDocument, node: nodeDocument}
			before, err := json.Marshal(master)
			if err != nil {
				t.Fatal(err)
			}
			c.complete()
			c.validate()
			c.Ignored()
			if len(problems) > 0 || len(nodeProblems) > 0 {
				continue
			}
			if _, err := c.View(); err != nil {
				t.Errorf("view of %s: %v", before, err)
			}
		}
	})
}
