package language

import "testing"

func TestLanguageIsRecognizedByNamesOfFiles(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"README.md", "requirements.txt"}, "python"},
		{[]string{"package.json", "Gemfile"}, "ruby"},
		{[]string{"shop.csproj"}, "dotnet"},
		{[]string{"[*", "main.go"}, "golang"},
		{[]string{"Dockerfile", "requirements.txt.old"}, ""},
		{nil, ""},
	} {
		if got := Of(tt.names); got != tt.want {
			t.Errorf("the language of %q is %q, want %q", tt.names, got, tt.want)
		}
	}
}
