// What a survey of a file has found, as the public interface tells it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/damage.h"
#include "storage/file.h"
#include "storage/log_survey.h"
#include "storage/segment_survey.h"
#include "storage/status.h"

namespace stride {

// All damage of a segment's file. table: its name.
void add_damage(const SegmentSurvey& survey, const std::string& table, std::vector<Damage>* damage);
// Of a file of which nothing can be read. rows: that it has, as far as that is known.
Damage damage_of_file(const Status& why, const std::string& file, const std::string& table,
                      uint64_t rows);
// Of a manifest, or CURRENT.
Damage damage_of_manifest(const Status& why);
// As the survey tells of a log's file.
void add_damage(const LogSurvey& survey, const std::string& file, std::vector<Damage>* damage);

// The first of the damage as a Status; ok where there is none.
Status first_of(const std::vector<Damage>& damage);

}  // namespace stride
