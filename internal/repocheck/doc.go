// Package repocheck checks the repository's rules in tests: which folder may import which, the form
// of packages, files and comments, and what the tree must not contain. The folder vocabulary is the
// table in layers_test.go. A failure message contains the file, the rule and the remedy.
//
// The tests parse source files and compile nothing, so they take only seconds in a clean clone.
package repocheck
