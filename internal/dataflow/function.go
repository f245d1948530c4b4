package dataflow

import "strings"

// function reports whether a word only holds an English sentence together. Such words carry nothing that could come from anybody: articles,
// prepositions, conjunctions, pronouns and auxiliary verbs.
func function(text string) bool {
	return strings.Contains(functionWords, " "+text+" ")
}

const functionWords = " a an the this that these those and or but nor so if then than as of at by for from in into on onto to with without " +
	"about over under between after before until till during through i me my mine you your yours he him his she her hers it its we us our ours " +
	"they them their theirs who which what there here is are was were be been being am do does did have has had will would can could shall " +
	"should may might must not no yes also just too very "
