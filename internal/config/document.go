package config

import (
	"fmt"
	"strings"
)

// Document is docs/config.md: the registry for people to read. It is the same for every call.
func Document() []byte {
	var b strings.Builder
	b.WriteString(documentHead)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		if s.intro != "" {
			fmt.Fprintf(&b, "\n%s\n", s.intro)
		}
		for _, o := range s.options {
			documentOption(&b, o.describe())
		}
	}
	b.WriteString(documentAbsences)
	for _, a := range absences {
		key := a.prefix
		if strings.HasSuffix(key, ".") {
			key += "*"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", key, a.why)
	}
	return []byte(b.String())
}

func documentOption(b *strings.Builder, d description) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s\n\n", d.Key, d.Doc)
	fmt.Fprintf(b, "- Type: %s", d.Type)
	if d.Limit != "" {
		fmt.Fprintf(b, ", %s", d.Limit)
	}
	fmt.Fprintf(b, "\n- Default: %s\n", d.Default)
	if d.Differs != "" {
		fmt.Fprintf(b, "- Differs from Flink: %s\n", d.Differs)
	}
	if len(d.Aliases) > 0 {
		fmt.Fprintf(b, "- Old names, still read: `%s`\n", strings.Join(d.Aliases, "`, `"))
	}
}

const documentHead = `<!-- Generated from internal/config; do not edit. Renew: go test ./internal/config -run TestDocs -update -->

# Configuration

Keys are Flink's wherever Flink has the option; Weir's own begin with ` + "`weir.`" + `. What differs from Flink is said at each
option.

## Where options are written

From the weakest source to the strongest:

1. A file in YAML: the one named by ` + "`--config FILE`" + `, else ` + "`$WEIR_CONF_DIR/config.yaml`" + `, else ` + "`config.yaml`" + ` in the working
   directory. Only one file is read. Keys may be written whole or nested:

   ` + "```yaml" + `
   parallelism.default: 4
   execution.checkpointing:
     interval: 10 s
     dir: /var/lib/weir
   ` + "```" + `

2. The program: ` + "`env.Set(\"parallelism.default\", 4)`" + ` and the methods of Env that stand for options.
3. The job's command line. Weir takes its own arguments before the program sees the others:

   | argument | meaning |
   |---|---|
   | ` + "`-s PATH`, `--fromSavepoint PATH`" + ` | ` + "`execution.state-recovery.path`; also `latest` and `latest-or-start`" + ` |
   | ` + "`-n`, `--allowNonRestoredState`" + ` | ` + "`execution.state-recovery.ignore-unclaimed-state`" + ` |
   | ` + "`-p N`, `--parallelism N`" + ` | ` + "`parallelism.default`" + ` |
   | ` + "`-D KEY=VALUE`, `-DKEY=VALUE`" + ` | any option |
   | ` + "`--config FILE`" + ` | the file |
   | ` + "`--`" + ` | what follows is the program's, even where it looks like Weir's |

   The person who starts a job has the last word, so the command line wins over the program.

A key that is not listed here is an error, and so is a value out of its limits: all problems are reported before the job starts.

## How values are written

- **Duration**: ` + "`10 s`, `500ms`, `1 min`, `2 h`, `1 d`" + ` as in Flink (a number without a unit is milliseconds), ` + "`PT10S`" + ` as in
  ISO 8601, ` + "`1h30m`" + ` as in Go. In Go also a time.Duration.
- **Memory size**: ` + "`5 mb`, `20kb`, `1 gb`" + `; a kilobyte is 1,024 bytes, a number without a unit is bytes.
- **Enum**: one of the words, in upper or lower case.
`

const documentAbsences = `
## Options of Flink that are not here

| key | why |
|---|---|
`
